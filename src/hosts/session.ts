/**
 * What an agent does while its lease is valid: converge, serve, follow published states and the state of the host.
 *
 * Failure modes: a part that cannot start, converge or serve is retried. If that lasts longer than a lease, a host that still
 * serves, because its predecessor left it serving or because other parts do, stops serving and counts as not converged, so
 * that no change waits for it and no host hands over to it.
 */
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { shared } from '../platform/turns.ts';
import type { Db } from '../platform/db.ts';
import type { Keyring } from '../platform/encryption.ts';
import type { Listener } from '../platform/listener.ts';
import type { Logger } from '../platform/log.ts';
import * as store from './agent-store.ts';
import type { Incarnation, PublishedState } from './agent-store.ts';
import { type Applier, createApplier } from './applier.ts';
import { createObservations, type Observations } from './observations.ts';
import { canHandOver, type HostPart, type RegionView } from './part.ts';
import { reportReadings } from './report-readings.ts';
import { createStateCodec } from './state-codec.ts';
import {
  CannotServe,
  createHostStateFollower,
  type HostStateFollower,
  type HostStateFollowerOptions,
} from './host-state.ts';
import { findPublished, type Key, keyOf, lastOfEach, publishedChannel } from './store.ts';
import type { AppliedStates } from './table.ts';
import { createTimeline, type Timeline } from './timeline.ts';
import type { Update, Updates } from './updates.ts';

export interface SessionOptions extends Omit<HostStateFollowerOptions, 'onServing'> {
  keyring: Keyring;
  listener: Listener;
  updates: Updates;
  /** Aborts when the lease is lost or the agent stops. */
  signal: AbortSignal;
  /** Whether the host still serves what its predecessor served. */
  isServing: boolean;
  /** Whether changes wait for the host. */
  isConverged: boolean;
  /** Resolves when no part serves. */
  stopServing(): Promise<void>;
  onStarted(): void;
  onConverged(): void;
  /** What the next report contains; null: the host has not converged. */
  reportApplied(read: (() => AppliedStates) | null): void;
}

/** What the attempts of a session know of each other. */
interface Attempts {
  /** Whether changes wait for the host. */
  isConverged: boolean;
  /** When attempts began to fail. */
  failingSince: number | null;
  /** Until the next attempt. */
  pauseMs: number;
}

const retryMs = 2000;
/** A host that converges but cannot serve would otherwise join and leave all the time. */
const lastRetryMs = 60_000;

/** Resolves when `signal` aborts and nothing of the session runs any more. */
export async function runSession(options: SessionOptions): Promise<void> {
  const { listener, host, signal, lease, log, isServing, isConverged } = options;
  lease.allowAddresses(isServing);
  const published = { notify: () => {} };
  const timeline = createTimeline(log);
  const unfollow = listener.follow(publishedChannel(host.regionId), {
    onNotification: (what) => (what === 'hosts' ? lease.renew() : published.notify()),
    async onConnected(client) {
      lease.renew();
      await timeline.read(client);
    },
  });
  const attempts: Attempts = { isConverged, failingSince: null, pauseMs: retryMs };
  while (!signal.aborted) {
    try {
      await serve(options, published, attempts, timeline);
      log.warn({ host: host.name }, 'another server became the primary of the database; converging again');
      continue;
    } catch (error) {
      if (!signal.aborted) await failed(options, attempts, error);
    }
    await sleep(attempts.pauseMs, undefined, { signal }).catch(() => {});
  }
  await unfollow();
}

async function failed(options: SessionOptions, attempts: Attempts, error: unknown): Promise<void> {
  const { db, host, log, lease, leaseSeconds, now = uptime } = options;
  log.error({ err: error }, 'this host cannot serve yet');
  attempts.failingSince ??= now();
  const isServeFailure = error instanceof CannotServe;
  if (isServeFailure) attempts.pauseMs = Math.min(attempts.pauseMs * 2, lastRetryMs);
  if (!attempts.isConverged || (!isServeFailure && now() - attempts.failingSince < leaseSeconds)) return;
  log.error({ host: host.name }, 'this host stops serving until it can converge and serve');
  lease.allowAddresses(false);
  await options.stopServing();
  await store.markNotConverged(db, host).then(
    () => (attempts.isConverged = false),
    // After the next attempt again.
    (err: unknown) => log.warn({ err }, 'cannot report that this host does not serve'),
  );
}

/**
 * `published.notify` is called when states were published. Resolves when the host must converge again, because the database may
 * have lost what it has applied.
 */
async function serve(
  options: SessionOptions,
  published: { notify(): void },
  attempts: Attempts,
  timeline: Timeline,
): Promise<void> {
  const { db, host, log, parts, signal, updates } = options;
  // Ends with the attempt, so that its applier does not outlive it.
  const attempt = new AbortController();
  const over = AbortSignal.any([signal, attempt.signal]);
  const observations = createObservations(db, host, log, over);
  const codec = createStateCodec(options.keyring, host.regionId);
  const applier = createApplier({ parts, codec, observations, log, signal: over });
  const others: Promise<unknown>[] = [];
  const changes = timeline.changes();
  try {
    const first = await updates.next(over);
    for (const part of parts) await part.start(first.view);
    options.onStarted();
    const revision = await converge(options, applier, observations);
    Object.assign(attempts, { isConverged: true, failingSince: null });
    options.onConverged();
    log.info({ host: host.name, revision }, 'this host has converged');
    const follower = createHostStateFollower({ ...options, onServing: () => (attempts.pauseMs = retryMs) });
    others.push(reportReadings(options, over));
    const puller = createPuller(options, applier, revision);
    published.notify = puller.pull;
    options.reportApplied(() => ({ revision: puller.revision(), pending: applier.pending() }));
    const isReplaced = () => timeline.changes() !== changes;
    await follow(options, { puller, follower, first: first.view, isReplaced, over });
  } finally {
    published.notify = () => {};
    options.reportApplied(null);
    attempt.abort(new Error('the session is over'));
    await Promise.allSettled(others);
    await applier.idle();
  }
}

/** Applies everything that is published, and marks the host as converged. Returns the last revision. */
async function converge(
  { db, host, signal }: SessionOptions,
  applier: Applier,
  observations: Observations,
): Promise<number> {
  const published: PublishedState[] = [];
  for await (const rows of store.publishedSince(db, host.regionId, 0)) published.push(...rows);
  // A state may be published again while a long list is read.
  await applier.converge(lastOfEach(published));
  let revision = published.at(-1)?.revision ?? 0;
  await store.forgetRemoved(db, host);
  for (;;) {
    revision = await applySince(db, host, applier, revision);
    await applier.idle();
    await observations.written();
    signal.throwIfAborted();
    let different: Key[] = [];
    const converged = await store.markConverged(db, host, (all) => {
      different = applier.differences(all);
      return different.length === 0;
    });
    if (converged) return revision;
    if (converged === null) throw new Error('the lease is lost');
    const found = await findPublished(db, host.regionId, different);
    const isFound = new Set(found.map(keyOf));
    const gone = different.filter((key) => !isFound.has(keyOf(key)));
    applier.apply([...found, ...gone.map((key) => ({ ...key, revision, state: null }))]);
    await applier.idle();
    await sleep(convergePauseMs, undefined, { signal });
  }
}

const convergePauseMs = 100;

async function applySince(db: Db, { regionId }: Incarnation, applier: Applier, after: number): Promise<number> {
  let revision = after;
  for await (const rows of store.publishedSince(db, regionId, after)) {
    applier.apply(rows);
    revision = rows.at(-1)!.revision;
  }
  return revision;
}

function createPuller({ db, host, log }: SessionOptions, applier: Applier, first: number) {
  let revision = first;
  let pulled: Promise<void> = Promise.resolve();
  const run = shared(async () => {
    try {
      revision = await applySince(db, host, applier, revision);
    } catch (error) {
      // The next renewal of the lease finds the new revision.
      log.warn({ err: error }, 'cannot read published states');
    }
  });
  return {
    /** Applies what was published since the last call. */
    pull: () => void (pulled = run()),
    /** The last revision that was passed to the applier. */
    revision: () => revision,
    idle: () => pulled,
  };
}

interface Following {
  puller: ReturnType<typeof createPuller>;
  follower: HostStateFollower;
  first: RegionView;
  /** Whether the database may have lost what the host has applied. */
  isReplaced(): boolean;
  over: AbortSignal;
}

/** Resolves when the database was replaced. */
async function follow(
  options: SessionOptions,
  { puller, follower, first, isReplaced, over }: Following,
): Promise<void> {
  const { log, parts, updates } = options;
  let seen: string | null = JSON.stringify(first);
  let waited = false;
  try {
    puller.pull();
    for (;;) {
      const update = await updates.next(over);
      if (isReplaced()) return;
      const waits = waitsToDrain(update);
      if (waits && !waited) log.warn('this host serves until another host can take what it holds; then it drains');
      waited = waits;
      follower.set(waits ? 'active' : update.state);
      follower.throwIfFailing();
      if (update.revision > puller.revision()) puller.pull();
      const text = JSON.stringify(update.view);
      if (text === seen) continue;
      const followed = await Promise.all(parts.map((part) => changed(part, update.view, log)));
      // The next update tries again.
      seen = followed.every(Boolean) ? text : null;
    }
  } finally {
    await Promise.all([follower.stop(), puller.idle()]);
  }
}

/** A host that drains serves until another one may take what it holds, also if it has held nothing since its agent began. */
function waitsToDrain({ state, view }: Update): boolean {
  return state === 'draining' && !canHandOver(view);
}

async function changed(part: HostPart, view: RegionView, log: Logger): Promise<boolean> {
  try {
    await part.hostsChanged(view);
    return true;
  } catch (error) {
    log.error({ err: error, part: part.title }, 'a part did not follow a change of the hosts');
    return false;
  }
}
