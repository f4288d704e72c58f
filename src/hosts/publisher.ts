/**
 * How the worker of a region reaches its hosts: it publishes the desired state of a resource and waits until every host has
 * applied it.
 *
 * Invariant: `publish` resolves only when no host, reachable or not, can still serve an older state. A host is waited for
 * until it has observed the revision, or until its lease has ended for longer than it may still serve.
 *
 * Invariant: only the last worker that has claimed a region (`claimPublishing`) publishes. One that was frozen for longer than
 * it keeps its lock publishes nothing when it continues.
 *
 * Requests that arrive during a statement share the next one, and one query serves all that wait.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { DriverError } from '../errors/driver-error.ts';
import type { Db } from '../platform/db.ts';
import type { Keyring } from '../platform/encryption.ts';
import type { Listener } from '../platform/listener.ts';
import type { Logger } from '../platform/log.ts';
import type { PublishedKind, Publisher } from './part.ts';
import { createStateCodec } from './state-codec.ts';
import * as store from './store.ts';
import type { ObservedError } from './table.ts';

/** Publishers of a region, one for each kind. */
export interface Publishers {
  of<State>(kind: PublishedKind): Publisher<State>;
  stop(): Promise<void>;
}

interface PublishersDeps {
  db: Db;
  keyring: Keyring;
  listener: Listener;
  log: Logger;
  regionId: number;
  /** From `claimPublishing` of store.ts. */
  epoch: number;
  /** Called when another worker has claimed the region. */
  onSuperseded(): void;
  /** How often to check without a notification; default 500. */
  pollMs?: number;
}

interface Request extends store.Key {
  text: string | null;
  signal: AbortSignal;
  revision: number;
  resolve(): void;
  reject(error: unknown): void;
}

const defaultPollMs = 500;
const maxRetrySeconds = 20;
const decompress = promisify(gunzip);

export function createPublishers(deps: PublishersDeps): Publishers {
  const { db, keyring, listener, log, regionId } = deps;
  const codec = createStateCodec(keyring, regionId);
  const queue: Request[] = [];
  const waiting = new Set<Request>();
  let publishing: Promise<void> | null = null;
  let checking: Promise<void> | null = null;
  let checkAgain = false;

  const publishQueue = async () => {
    while (queue.length > 0) {
      const batch = takeBatch(queue);
      try {
        await publishBatch(batch);
        for (const request of batch) waiting.add(request);
        check();
      } catch (error) {
        for (const request of batch) request.reject(error);
      }
    }
    publishing = null;
  };

  /** `undefined` if the state cannot be decrypted: it is published again, and the other requests are not affected. */
  const textOf = (key: store.Key, state: Buffer | null) => {
    try {
      return state && codec.text(key, state);
    } catch (error) {
      log.error({ err: error, regionId, kind: key.kind, id: key.id }, 'a published state cannot be decrypted');
      return undefined;
    }
  };

  /** A state that is published already and that no host failed to apply keeps its revision. */
  const publishBatch = async (batch: Request[]) => {
    const found = await store.findPublished(db, regionId, batch);
    const published = new Map(found.map((row) => [keyOf(row), row]));
    const changed = batch.filter((request) => {
      const row = published.get(keyOf(request));
      request.revision = row?.revision ?? 0;
      if (!row) return request.text !== null;
      return row.failed || request.text !== textOf(request, row.state);
    });
    if (changed.length === 0) return;
    const states = changed.map(({ kind, id, text }) => ({
      ...{ kind, id },
      state: text === null ? null : codec.encode({ kind, id }, JSON.parse(text)),
    }));
    const revisions = await store.insertPublished(db, deps, states);
    if (revisions.length === 0) {
      deps.onSuperseded();
      throw superseded(regionId);
    }
    const byKey = new Map(revisions.map((row) => [keyOf(row), row.revision]));
    for (const request of changed) request.revision = byKey.get(keyOf(request))!;
  };

  const check = () => {
    checkAgain = true;
    checking ??= checkWaiting().finally(() => (checking = null));
  };
  const checkWaiting = async () => {
    while (checkAgain && waiting.size > 0) {
      checkAgain = false;
      await checkOnce([...waiting]).catch((error: unknown) =>
        log.warn({ err: error, regionId }, 'cannot read what the hosts have applied'),
      );
    }
  };
  const checkOnce = async (requests: Request[]) => {
    const progress = Map.groupBy(await store.findProgress(db, regionId, requests), keyOf);
    const removed: Request[] = [];
    for (const request of requests) {
      const result = resultOf(request, progress.get(keyOf(request)) ?? []);
      if (result === 'waits' && !request.signal.aborted) continue;
      waiting.delete(request);
      if (result === 'done' && request.text === null) removed.push(request);
      else settle(request, result);
    }
    if (removed.length === 0) return;
    await store.purgeRemoved(db, regionId, removed).catch((error: unknown) => {
      log.warn({ err: error, regionId }, 'cannot delete the marks of removed resources');
    });
    for (const request of removed) request.resolve();
  };

  const timer = setInterval(() => waiting.size > 0 && check(), deps.pollMs ?? defaultPollMs);
  timer.unref();
  const unfollow = listener.follow(store.observedChannel(regionId), {
    onNotification: check,
    onConnected: async () => check(),
  });

  const publish = (kind: PublishedKind, id: string, state: unknown, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const aborted = () => reject(signal.reason as Error);
      signal.addEventListener('abort', aborted, { once: true });
      const release = () => signal.removeEventListener('abort', aborted);
      queue.push({
        ...{ kind, id, signal, revision: 0, text: state === null ? null : JSON.stringify(state) },
        resolve: () => (release(), resolve()),
        reject: (error) => (release(), reject(error as Error)),
      });
      publishing ??= publishQueue();
    });

  return {
    of: <State>(kind: PublishedKind): Publisher<State> => ({
      publish: (id, state, signal) => publish(kind, id, state, signal),
      ids: async () => (await store.publishedIds(db, regionId, kind)).map(({ id }) => id),
      async states() {
        const rows = await store.publishedOfKind(db, regionId, kind);
        return new Map(rows.map(({ id, state }) => [id, codec.decode({ kind, id }, state) as State]));
      },
      async readings<Readings>() {
        const rows = await store.readingsOfKind(db, regionId, kind);
        const read = rows.map(async ({ host, readings }): Promise<[string, Readings]> => {
          return [host, JSON.parse((await decompress(Buffer.from(readings, 'base64'))).toString('utf8')) as Readings];
        });
        return new Map(await Promise.all(read));
      },
    }),
    async stop() {
      clearInterval(timer);
      await unfollow();
      await Promise.allSettled([publishing, checking]);
    },
  };
}

const keyOf = ({ kind, id }: store.Key) => `${kind}\n${id}`;
const maxBatch = 200;

/** Removes the next requests from the queue, one for each resource. */
function takeBatch(queue: Request[]): Request[] {
  const taken = new Map<string, Request>();
  const later = queue.splice(0).filter((request) => {
    if (taken.size >= maxBatch || taken.has(keyOf(request))) return true;
    taken.set(keyOf(request), request);
    return false;
  });
  queue.push(...later);
  return [...taken.values()];
}

type Result = 'waits' | 'done' | DriverError;

function resultOf({ revision, text }: Request, progress: store.Progress[]): Result {
  if (progress.length === 0) return text === null ? 'done' : noHost();
  // Revision 0: it was never published, or all hosts have removed it.
  if (revision === 0) return 'done';
  if (progress.some((host) => host.revision === null || host.revision < revision)) return 'waits';
  const failures = progress.flatMap(({ host, error }) => (error ? [{ host, error }] : []));
  return failures.length === 0 ? 'done' : errorOf(failures);
}

function settle(request: Request, result: Result): void {
  if (request.signal.aborted) request.reject(request.signal.reason);
  else if (result instanceof DriverError) request.reject(result);
  else request.resolve();
}

function superseded(regionId: number): DriverError {
  return new DriverError(`another worker publishes for region ${regionId}`, {
    customerMessage: 'the region changed its worker; the operation is retried',
    retryable: true,
  });
}

function noHost(): DriverError {
  return new DriverError('no host of the region serves; start an agent with: cloudyard host --region N', {
    customerMessage: 'no host of the region is available at the moment; the operation is retried',
    ...{ retryable: true, shortage: true, maxRetrySeconds },
  });
}

/** A permanent error precedes. Only the message for operators names hosts. */
function errorOf(failures: { host: string; error: ObservedError }[]): DriverError {
  const { error } = failures.find((each) => !each.error.retryable) ?? failures[0]!;
  const { customerMessage, retryable, shortage } = error;
  const message = failures.map(({ host, error: { message: text } }) => `host ${host}: ${text}`).join('; ');
  return new DriverError(message, { customerMessage, retryable, shortage });
}
