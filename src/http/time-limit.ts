/**
 * Limits the time of a request. A statement may wait for a lock, for a synchronous standby or for a backend that does not
 * respond, and the next requests of the client wait for its slots. They get 503.
 *
 * Authentication, the wait for a share of a rate limit, the wait for a slot, and the handler have this time each. A wait for a
 * task or a worker does not count, and the arrival of the body has a limit of its own (connection-limits.ts).
 *
 * Invariants:
 * - A request that got 503 changes nothing from then on, unless a commit of it had been sent: its transactions are rolled back
 *   (authz/actor.ts), and the response says which is the case. Without that, a client that repeats a POST would create twice.
 * - The work itself continues, and a request keeps its slot until its handler has finished. Otherwise a client could run any
 *   number of handlers that hang, which would occupy all connections to the database.
 */
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import type { RequestContext } from '../authz/actor.ts';
import { unavailable } from '../errors/catalogue.ts';
import type { App } from './app.ts';

export interface TimeLimitOptions {
  ms: number;
  /** The interval of checks. */
  checkMs: number;
}

/** Shorter than the time limits of proxies and clients, and longer than `lock_timeout`, whose error says more. */
const defaults: TimeLimitOptions = { ms: 30_000, checkMs: 1000 };

/**
 * Limits a statement of a request, so that one that hangs releases its connection. PostgreSQL does not apply it to a commit.
 * Shorter than the time of a request, whose error says less, and longer than `lock_timeout`, whose error says more.
 */
export const statementTimeout = '25s';

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

type TimeLimit = ReturnType<typeof createTimeLimit>;

/**
 * The time of one piece of work, in a ring of all that run. Every request has one. A Set, which lives long, would keep ended
 * requests in memory until its next reorganization: GET took a third more CPU time (measured).
 */
class TimeOfWork {
  since = performance.now();
  next: TimeOfWork = this;
  #previous: TimeOfWork = this;

  /** Called when the time is over. */
  expire(): void {}

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
  const ring = new TimeOfWork();
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

  const start = <Time extends TimeOfWork>(time: Time): Time => time.begin(ring);
  const begin = (expire: () => void) => start(Object.assign(new TimeOfWork(), { expire }));

  return {
    seconds: ms / 1000,
    /** Starts a time. */
    start,
    /** Calls `expire` when the time is over. */
    begin,
    /** Settles as `work`. @throws ClientError 503 when the time is over; `work` continues */
    limit<T>(work: Promise<T>): Promise<T> {
      return new Promise((resolve, reject) => {
        const time = begin(() => reject(tooLate(ms)));
        work.finally(() => time.end()).then(resolve, reject);
      });
    },
    stop: () => clearInterval(timer),
  };
}

/** The time of a handler. Fastify awaits it in place of the handler's promise, so that a request needs no further promise. */
class TimeOfHandler extends TimeOfWork {
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #work: Promise<unknown>;
  readonly #ms: number;
  #reject: (error: unknown) => void = () => {};
  #isRejected = false;

  constructor(request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>, ms: number) {
    super();
    this.#request = request;
    this.#reply = reply;
    this.#work = work;
    this.#ms = ms;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- only Fastify awaits it
  then(resolve: (result: unknown) => void, reject: (error: unknown) => void): void {
    this.#reject = reject;
    this.#work.then(
      (result) => {
        this.end();
        if (!this.#isRejected) resolve(result);
      },
      (error: unknown) => {
        this.end();
        if (!this.#isRejected) reject(error);
      },
    );
  }

  override expire(): void {
    // A stream that the client reads slowly.
    if (this.#reply.raw.headersSent) return;
    const { method, by } = this.#request;
    by?.slot?.keepUntil(this.#work);
    if (by) by.isOver = true;
    this.#isRejected = true;
    const effect = method === 'GET' || method === 'HEAD' ? '' : effectOf(by);
    this.#reject(tooLate(this.#ms, effect));
  }
}

/** Adds the limit to the handlers of routes that are registered afterwards. */
export function timeLimit(app: App, overrides: Partial<TimeLimitOptions> = {}): void {
  const options = { ...defaults, ...overrides };
  const limit = createTimeLimit(options);
  app.decorate('timeLimit', limit);
  app.decorateRequest('handlerTime', null);
  app.addHook('onClose', async () => limit.stop());

  app.addHook('onRoute', (route) => {
    if (route.config?.isStream || route.config?.limitsItself) return;
    const handle = route.handler as RouteHandlerMethod;
    route.handler = function (request, reply): any {
      const result: unknown = handle.call(this, request, reply);
      if (!(result instanceof Promise)) return result;
      const time = new TimeOfHandler(request, reply, result, options.ms);
      request.handlerTime = limit.start(time);
      return time;
    };
  });
}

/** `context` is absent for public operations, which may send a commit without it. */
function effectOf(context: RequestContext | undefined): string {
  return context && !context.mayTakeEffect ? '; nothing was changed' : ', and may have taken effect or may still do so';
}

function tooLate(ms: number, effect = '') {
  return unavailable(`the request was not completed within ${ms / 1000} s${effect}; try again in a second`);
}
