/**
 * Limits the time of a request. A statement may wait for a lock, for a synchronous standby or for a backend that does not
 * respond, and the next requests of the client wait for its slots. They get 503.
 *
 * Authentication, the wait for a slot, and the handler have this time each. A wait for a task or a worker does not count, and
 * the arrival of the body has a limit of its own (connection-limits.ts).
 *
 * Invariant: the work itself continues, and a request keeps its slot until its handler has finished. Otherwise a client could
 * run any number of handlers that hang, which would occupy all connections to the database.
 */
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { unavailable } from '../errors/catalogue.ts';
import type { App } from './app.ts';

export interface TimeLimitOptions {
  ms: number;
  /** The interval of checks. */
  checkMs: number;
}

/** Shorter than the time limits of proxies and clients, and longer than `lock_timeout`, whose error says more. */
const defaults: TimeLimitOptions = { ms: 30_000, checkMs: 1000 };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler limits its time itself. */
    limitsItself?: boolean;
  }
  interface FastifyInstance {
    timeLimit: TimeLimit;
  }
  interface FastifyRequest {
    /** The time of the handler; null while it has no limit. */
    handlerTime: TimeOfWork | null;
  }
}

export type TimeLimit = ReturnType<typeof createTimeLimit>;

/**
 * The time of one piece of work, in a ring of all that run. Every request has one. A Set, which lives long, would keep ended
 * requests in memory until its next reorganization: GET took a third more CPU time (measured).
 */
class TimeOfWork {
  since = performance.now();
  next: TimeOfWork = this;
  #previous: TimeOfWork = this;
  readonly expire: () => void;

  /** Calls `expire` when the time is over. */
  constructor(expire: () => void) {
    this.expire = expire;
  }

  /** Puts it before `other`. */
  begin(other: TimeOfWork): this {
    this.next = other;
    this.#previous = other.#previous;
    this.#previous.next = this;
    other.#previous = this;
    return this;
  }

  end(): void {
    this.#previous.next = this.next;
    this.next.#previous = this.#previous;
    this.next = this;
    this.#previous = this;
  }

  pause(): void {
    this.since = Infinity;
  }

  /** Counts from zero again. */
  restart(): void {
    this.since = performance.now();
  }
}

function createTimeLimit({ ms, checkMs }: TimeLimitOptions) {
  const ring = new TimeOfWork(() => {});
  const timer = setInterval(() => {
    const latest = performance.now() - ms;
    for (let one = ring.next; one !== ring; ) {
      if (one.since > latest) {
        one = one.next;
        continue;
      }
      one.end();
      one.expire();
      // It may have ended others, which are not in the ring now.
      one = ring.next;
    }
  }, checkMs).unref();

  const begin = (expire: () => void) => new TimeOfWork(expire).begin(ring);

  return {
    seconds: ms / 1000,
    /** Calls `expire` when the time is over. */
    begin,
    /** Settles as `work`. @throws ClientError 503 when the time is over; `work` continues */
    limit<T>(work: Promise<T>): Promise<T> {
      return new Promise((resolve, reject) => {
        const time = begin(() => reject(tooLate(ms, false)));
        work.finally(() => time.end()).then(resolve, reject);
      });
    },
    stop: () => clearInterval(timer),
  };
}

/** Adds the limit to the handlers of routes that are registered afterwards. */
export function timeLimit(app: App, overrides: Partial<TimeLimitOptions> = {}): void {
  const options = { ...defaults, ...overrides };
  const limit = createTimeLimit(options);
  app.decorate('timeLimit', limit);
  app.decorateRequest('handlerTime', null);
  app.addHook('onClose', async () => limit.stop());

  const limitHandler = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const time = limit.begin(() => {
        // A stream that the client reads slowly.
        if (reply.raw.headersSent) return;
        request.by?.slot?.keepUntil(work);
        reject(tooLate(options.ms, request.method !== 'GET' && request.method !== 'HEAD'));
      });
      request.handlerTime = time;
      work.then(
        (result) => {
          time.end();
          resolve(result);
        },
        (error: unknown) => {
          time.end();
          reject(error);
        },
      );
    });

  app.addHook('onRoute', (route) => {
    if (route.config?.isStream || route.config?.limitsItself) return;
    const handle = route.handler as RouteHandlerMethod;
    route.handler = function (request, reply): any {
      const result: unknown = handle.call(this, request, reply);
      return result instanceof Promise ? limitHandler(request, reply, result) : result;
    };
  });
}

function tooLate(ms: number, mayTakeEffect: boolean) {
  const effect = mayTakeEffect ? ', and may still take effect' : '';
  return unavailable(`the request was not completed within ${ms / 1000} s${effect}; try again in a second`);
}
