/**
 * Limits each client on this server: requests per second, open requests, open waits, and slots (request-slots.ts). All
 * tokens of a client share its limits; a client of weight n has n times the limits and the slots.
 *
 * A request enters after its token is authenticated and before its body is read. It holds a slot until its handler has
 * finished: a client that disconnects does not get the slot back earlier, or else it could run any number of handlers.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { RequestSlot } from '../authz/actor.ts';
import { ClientError, tooManyRequests, unavailable } from '../errors/catalogue.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { CoreSettings } from '../platform/settings.ts';
import type { App } from './app.ts';
import {
  createFlow,
  createRequestSlots,
  type Flow,
  listCost,
  readCost,
  requestCost,
  type RequestSlots,
} from './request-slots.ts';
import { createRateBuckets, type RequestRates } from './request-rate.ts';

export interface ClientLimitsOptions {
  /** Of a client of weight 1 on each server. `requestBurst` 0: the requests of one second. */
  limits: CoreSettings['clientLimits'];
  /** Connections of the database pool. */
  poolSize: number;
  /** Absent: this process counts the requests a second by itself. */
  rates?: RequestRates | undefined;
  metrics: Pick<Metrics, 'countRefusal' | 'watchRequests'>;
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The open event streams that a client of weight 1 may have on this server. */
    maxEventStreams: number;
  }
  interface FastifyContextConfig {
    /** A read of one resource that reads many rows, even for a short response: it costs as much as a list. */
    readsManyRows?: boolean;
  }
}

/** A read with a longer response, in characters, costs as much as a change. */
const largeLength = 16 * 1024;
/** For this time after a large response, all reads of the client by the same operation do. */
const largeMs = 60_000;

/** One client on this server. */
interface Client {
  flow: Flow;
  open: number;
  waits: number;
  /** When an operation last had a large response. */
  largeAt: Map<string, number>;
}

/** Adds the hooks. They run after those of authorization.ts, which set the caller, and before the body is read. */
export function clientLimits(
  app: App,
  { limits, poolSize, metrics, rates = createRateBuckets() }: ClientLimitsOptions,
): void {
  app.decorate('maxEventStreams', limits.eventStreams);
  const slots = createRequestSlots(poolSize);
  const clients = new Map<number, Client>();
  let waits = 0;
  metrics.watchRequests(() => ({ ...slots.counts(), waits }));

  const refusal = (limit: string, message: string, retrySeconds?: number) => {
    metrics.countRefusal(limit);
    return tooManyRequests(message, retrySeconds);
  };

  const clientOf = ({ clientId, weight = 1 }: FastifyRequest['by']['actor']): Client => {
    let client = clients.get(clientId);
    if (!client) {
      client = { flow: createFlow(weight), open: 0, waits: 0, largeAt: new Map() };
      clients.set(clientId, client);
    }
    client.flow.weight = weight;
    return client;
  };

  /** The error for one more open request of the client; null if it is within the limit. */
  const tooManyOpen = (client: Client): ClientError | null => {
    const open = limits.openRequests * client.flow.weight;
    if (client.open < open) return null;
    return refusal('open_requests', `the client has ${open} open requests on this server, its limit; try again later`);
  };

  /** Returns 0 if one more request is within the rate of the client, otherwise the seconds until it is. */
  const takeRequest = (clientId: number, { flow: { weight } }: Client): number | Promise<number> => {
    const perSecond = limits.requestsPerSecond * weight;
    if (perSecond === 0) return 0;
    return rates.take({ clientId, perSecond, burst: (limits.requestBurst || limits.requestsPerSecond) * weight });
  };

  const tooFast = ({ flow: { weight } }: Client, waitSeconds: number): ClientError => {
    const rate = limits.requestsPerSecond * weight;
    const limit = rate >= 1 ? `${rate} requests a second` : `${Math.round(rate * 60)} requests a minute`;
    return refusal('requests_per_second', `the client sends more than ${limit}, its limit`, waitSeconds);
  };

  const addWait = (client: Client, change: 1 | -1) => {
    const maxWaits = limits.openWaits * client.flow.weight;
    if (change === 1 && client.waits >= maxWaits) {
      throw refusal('open_waits', `the client has ${maxWaits} open waits on this server, its limit; try again later`);
    }
    client.waits += change;
    waits += change;
  };

  const enter = (cost: Cost) => (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    if (request.by.slot) return done();
    const client = clientOf(request.by.actor);
    const refused = tooManyOpen(client);
    if (refused) return done(refused);
    const begin = (waitSeconds: number) => {
      if (waitSeconds > 0) return done(tooFast(client, waitSeconds));
      const slot = new Slot(slots, client, cost, reply, addWait);
      request.by.slot = slot;
      slot.enter(done);
    };
    const waitSeconds = takeRequest(request.by.actor.clientId, client);
    if (typeof waitSeconds === 'number') begin(waitSeconds);
    // The first process does not respond while it is frozen.
    else request.server.timeLimit.limit(waitSeconds).then(begin, done);
  };

  app.addHook('onRoute', (route) => {
    const operation = route.schema?.operationId;
    if (operation === undefined || route.config?.access?.reach === 'public') return;
    route.onRequest = [...[route.onRequest ?? []].flat(), enter({ operation, usual: usualCost(route, operation) })];
    const isHead = route.method === 'HEAD';
    route.onSend = [...(isHead ? [discardStream] : []), ...[route.onSend ?? []].flat(), leave];
  });
}

/**
 * Ends the stream of a response that has no body. Fastify would read it to its end after the response, when the request has no
 * slot any more: any number of HEAD requests for the whole audit log would run at once.
 */
function discardStream(
  _request: FastifyRequest,
  _reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  if (payload instanceof Readable) payload.destroy();
  done(null, payload);
}

/** Uses a callback, because it runs for every request: see telemetry.ts. */
function leave(
  request: FastifyRequest,
  { raw }: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  const slot = request.by?.slot;
  if (slot) {
    const isStream = typeof (payload as { pipe?: unknown } | null)?.pipe === 'function';
    const { length = 0 } = (payload ?? {}) as { length?: number };
    if (isStream || length > largeLength) slot.noteLarge();
    if (!isStream || raw.destroyed) slot.end();
    else {
      raw.once('finish', () => slot.end());
      raw.once('close', () => slot.end());
    }
  }
  done(null, payload);
}

interface Cost {
  operation: string;
  /** Its cost, unless it is a read whose responses are large. */
  usual: number;
}

function usualCost({ method, config }: RouteOptions, operation: string): number {
  if (method !== 'GET' && method !== 'HEAD') return requestCost;
  return operation.startsWith('list') || config?.readsManyRows ? listCost : readCost;
}

/** Some resources have thousands of parts: 48 reads of such an API key at a time delayed other clients by a second (measured). */
function costNow({ largeAt }: Client, { operation, usual }: Cost): number {
  if (usual !== readCost) return usual;
  const at = largeAt.get(operation);
  return at !== undefined && performance.now() - at < largeMs ? requestCost : readCost;
}

const waitedTooLong = (seconds: number) =>
  `the request waited ${seconds} s for earlier requests of its client; try again in a second`;

/** The place of a request in the queue, and then its slot. */
class Slot implements RequestSlot {
  #state: 'running' | 'waiting' | 'ended' = 'running';
  /** Whether the handler still runs after the response. */
  #isKept = false;
  readonly #slots: RequestSlots;
  readonly #client: Client;
  readonly #cost: Cost;
  /** Of this request, once it has started. */
  #units = 0;
  readonly #reply: FastifyReply;
  readonly #addWait: (client: Client, change: 1 | -1) => void;

  constructor(
    slots: RequestSlots,
    client: Client,
    cost: Cost,
    reply: FastifyReply,
    addWait: (client: Client, change: 1 | -1) => void,
  ) {
    this.#slots = slots;
    this.#client = client;
    this.#cost = cost;
    this.#reply = reply;
    this.#addWait = addWait;
  }

  /** Calls `start` once the request has a slot, or with an error if that takes too long. */
  enter(start: (error?: Error) => void): void {
    this.#client.open += 1;
    if (this.#tryStart()) start();
    else this.#enqueue(start);
  }

  #tryStart(): boolean {
    this.#units = costNow(this.#client, this.#cost);
    return this.#slots.tryStart(this.#client.flow, this.#units);
  }

  /** Calls `start` when the request has a slot. */
  #wait(start: () => void): () => void {
    const cost = () => costNow(this.#client, this.#cost);
    return this.#slots.wait(this.#client.flow, cost, (units) => {
      this.#units = units;
      start();
    });
  }

  noteLarge(): void {
    const { operation, usual } = this.#cost;
    if (usual === readCost) this.#client.largeAt.set(operation, performance.now());
  }

  /** A request whose client disconnects, or that waits too long, leaves the queue, and its handler never runs. */
  #enqueue(start: (error?: Error) => void): void {
    const { raw, server } = this.#reply;
    this.#state = 'waiting';
    const leaveQueue = () => {
      withdraw();
      this.end();
    };
    const gone = () => {
      time.end();
      leaveQueue();
    };
    const time = server.timeLimit.begin(() => {
      raw.off('close', gone);
      leaveQueue();
      start(unavailable(waitedTooLong(server.timeLimit.seconds)));
    });
    const withdraw = this.#wait(() => {
      time.end();
      raw.off('close', gone);
      this.#state = 'running';
      start();
    });
    raw.once('close', gone);
  }

  async whileWaiting<T>(wait: (gone: AbortSignal) => Promise<T>): Promise<T> {
    const client = this.#client;
    this.#addWait(client, 1);
    const { raw, request } = this.#reply;
    const gone = new AbortController();
    const abort = () => gone.abort();
    if (raw.destroyed) abort();
    else raw.once('close', abort);
    this.#slots.end(client.flow, this.#units);
    client.open -= 1;
    request.handlerTime?.pause();
    try {
      return await wait(gone.signal);
    } finally {
      raw.off('close', abort);
      request.handlerTime?.restart();
      this.#addWait(client, -1);
      client.open += 1;
      if (!this.#tryStart()) await new Promise<void>((resolve) => void this.#wait(resolve));
    }
  }

  keepUntil(work: Promise<unknown>): void {
    this.#isKept = true;
    const end = () => {
      this.#isKept = false;
      this.end();
    };
    work.then(end, end);
  }

  end(): void {
    if (this.#isKept || this.#state === 'ended') return;
    const wasRunning = this.#state === 'running';
    this.#state = 'ended';
    this.#client.open -= 1;
    if (wasRunning) this.#slots.end(this.#client.flow, this.#units);
  }
}
