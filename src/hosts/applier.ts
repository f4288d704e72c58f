/**
 * Applies published states on a host with its parts: all of them when the agent begins, then those that change (state-queue.ts).
 *
 * Invariant: a revision is observed only after it, or a later one, was applied or has failed.
 */
import { limited } from '../platform/turns.ts';
import type { Logger } from '../platform/log.ts';
import type { PublishedState } from './agent-store.ts';
import { type Observations, observedError } from './observations.ts';
import type { HostPart } from './part.ts';
import { type DecodedStates, decodeStates, type StateCodec } from './state-codec.ts';
import { createStateQueue } from './state-queue.ts';
import { type Key, keyOf } from './store.ts';

interface ApplierDeps {
  parts: HostPart[];
  codec: StateCodec;
  observations: Observations;
  log: Logger;
  /** Aborts when the agent stops or has lost its lease. */
  signal: AbortSignal;
}

const defaultConcurrency = 16;

/** Calls no part before `converge` or `apply`. */
export function createApplier({ parts, codec, observations, log, signal }: ApplierDeps) {
  const partOf = new Map(parts.flatMap((part) => (part.kind === null ? [] : [[part.kind as string, part]])));
  const turns = new Map([...partOf].map(([kind, part]) => [kind, limited(part.concurrency ?? defaultConcurrency)]));
  const applied = createAppliedRevisions(observations);
  const queue = createStateQueue({
    apply: async ({ kind, id, state }) =>
      partOf.get(kind)!.apply(id, state && codec.decode({ kind, id }, state), signal),
    record: applied.record,
    turnOf: (kind) => turns.get(kind)!,
    ...{ log, signal },
  });

  const convergePart = async ({ part, published, states, undecodable }: DecodedPart) => {
    const failed = await part.converge(states, signal);
    signal.throwIfAborted();
    for (const each of published) {
      const error = failed.get(each.id) ?? undecodable.get(each.id) ?? null;
      applied.record(each, error);
      if (error !== null) queue.retry(each, error);
    }
  };
  /** This host serves nothing of the other kinds. */
  const recordOthers = (published: PublishedState[]) => {
    for (const each of published) if (!partOf.has(each.kind)) applied.record(each, null);
  };

  return {
    /** Brings the parts to exactly these states. Removals among them count as observed. @throws if it can decrypt none of them */
    async converge(published: PublishedState[]): Promise<void> {
      const byKind = Map.groupBy(published, ({ kind }) => kind);
      const decoded = [...partOf].map(([kind, part]) => {
        const ofPart = byKind.get(kind) ?? [];
        return { part, published: ofPart, ...decodeStates(codec, ofPart) };
      });
      requireKeys(decoded);
      const converged = await Promise.allSettled(decoded.map(convergePart));
      for (const each of converged) if (each.status === 'rejected') throw each.reason;
      recordOthers(published);
    },
    /** Applies states, of which earlier revisions may have been applied. */
    apply(published: PublishedState[]): void {
      for (const each of published) if (partOf.has(each.kind)) queue.add(each);
      recordOthers(published);
    },
    /** Resolves when nothing is being applied, except for what waits to be retried. */
    idle: queue.idle,
    /** How many resources are not at the last revision that was passed to the applier. */
    pending: () => new Set([...applied.failed, ...queue.keys()]).size,
    differences: applied.differences,
  };
}

export type Applier = ReturnType<typeof createApplier>;

/**
 * Which revision of each state this host has applied, or failed to apply. Begins without revisions: a new session does not know
 * what its predecessor applied.
 */
function createAppliedRevisions(observations: Observations) {
  /** The revision of each state that is not removed. */
  const revisions = new Map<string, Key & { revision: number }>();
  const failed = new Set<string>();
  return {
    /** The keys of states whose last revision failed. */
    failed: failed as ReadonlySet<string>,
    /** Also reports it to the worker. `error`: null if the state was applied. */
    record({ kind, id, revision, state }: PublishedState, error: unknown): void {
      const key = keyOf({ kind, id });
      if (state === null && error === null) revisions.delete(key);
      else revisions.set(key, { kind, id, revision });
      if (error === null) failed.delete(key);
      else failed.add(key);
      observations.add({ kind, id, revision, error: error === null ? null : observedError(error) });
    },
    /** The keys that were not applied, or failed, at these revisions, and those that are not among them. */
    differences(published: (Key & { revision: number })[]): Key[] {
      const keys = new Set(published.map(keyOf));
      return [
        ...published.filter((each) => revisions.get(keyOf(each))?.revision !== each.revision),
        ...[...revisions.values()].filter((each) => !keys.has(keyOf(each))).map(({ kind, id }) => ({ kind, id })),
      ];
    },
  };
}

type DecodedPart = DecodedStates & { part: HostPart; published: PublishedState[] };

/** A host with the key file of another installation would take addresses and serve nothing. @throws Error */
function requireKeys(decoded: DecodedStates[]): void {
  const [error] = decoded.flatMap(({ undecodable }) => [...undecodable.values()]);
  if (!error || decoded.some(({ states }) => states.size > 0)) return;
  throw new Error(`no published state can be decrypted; copy the key file of another host: ${error.message}`, {
    cause: error,
  });
}
