/**
 * Ends the requests whose states the hosts have applied. One query serves all that wait.
 *
 * Invariant: a request is resolved only when no host, reachable or not, can still serve an older state. The request
 * waits for each host until the host has observed the revision, or its lease ended so long ago that it cannot serve.
 *
 * Failure modes: a revision that the database lost in a failover fails with a retryable error, so that the state is published again.
 */
import { shared } from '../platform/turns.ts';
import { DriverError } from '../errors/driver-error.ts';
import type { Db } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import type { PublishRequest } from './publish-queue.ts';
import * as store from './store.ts';
import type { ObservedError } from './table.ts';

interface ProgressWatchOptions {
  db: Db;
  log: Logger;
  regionId: number;
}

const maxRetrySeconds = 20;

/** Checks only when it is called; the caller polls, and calls it with each notification of the hosts. */
export function createProgressWatch({ db, log, regionId }: ProgressWatchOptions) {
  const waiting = new Set<PublishRequest>();
  let checked: Promise<void> = Promise.resolve();

  const checkAll = async () => {
    const requests = [...waiting];
    if (requests.length === 0) return;
    const progress = Map.groupBy(await store.findProgress(db, regionId, requests), store.keyOf);
    const removed: PublishRequest[] = [];
    for (const request of requests) {
      const result = resultOf(request, progress.get(store.keyOf(request)) ?? []);
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
  const run = shared(() =>
    checkAll().catch((error: unknown) => log.warn({ err: error, regionId }, 'cannot read what the hosts have applied')),
  );
  const check = () => {
    if (waiting.size > 0) checked = run();
  };
  return {
    /** Waits for these, which are published. */
    add(requests: PublishRequest[]): void {
      for (const request of requests) waiting.add(request);
      check();
    },
    /** Reads what the hosts have observed. Does nothing if no request waits. */
    check,
    /** Resolves when the last check has ended; requests may still wait. */
    idle: () => checked,
  };
}

type Result = 'waits' | 'done' | DriverError;

function resultOf({ revision, text }: PublishRequest, progress: store.Progress[]): Result {
  if (progress.length === 0) return text === null ? 'done' : noHost();
  // Revision 0: it was never published, or all hosts have removed it.
  if (revision === 0) return 'done';
  // The same of all hosts.
  const { published } = progress[0]!;
  if (published === null || published < revision) return lost();
  if (progress.some((host) => host.revision === null || host.revision < revision)) return 'waits';
  const failures = progress.flatMap(({ host, error }) => (error ? [{ host, error }] : []));
  return failures.length === 0 ? 'done' : errorOf(failures);
}

function settle(request: PublishRequest, result: Result): void {
  if (request.signal.aborted) request.reject(request.signal.reason);
  else if (result instanceof DriverError) request.reject(result);
  else request.resolve();
}

function noHost(): DriverError {
  return new DriverError('no host of the region serves; start an agent with: cloudyard host --region N', {
    customerMessage: 'no host of the region is available at the moment',
    ...{ retryable: true, shortage: true, maxRetrySeconds },
  });
}

/** Of a former primary. */
function lost(): DriverError {
  return new DriverError('the database lost the published state in a failover; it is published again', {
    customerMessage: 'the change was interrupted by a failover of the database',
    retryable: true,
  });
}

/** A permanent error precedes. Only the message for operators names hosts. */
function errorOf(failures: { host: string; error: ObservedError }[]): DriverError {
  const { error } = failures.find((each) => !each.error.retryable) ?? failures[0]!;
  const { customerMessage, retryable, shortage } = error;
  const message = failures.map(({ host, error: { message: text } }) => `host ${host}: ${text}`).join('; ');
  return new DriverError(message, { customerMessage, retryable, shortage });
}
