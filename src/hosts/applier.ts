/**
 * Applies published states on a host with its parts: all of them when the agent begins, then those that change (state-queue.ts).
 *
 * Invariant: a revision is observed only after it, or a later one, was applied or has failed.
 */
import { limited } from '../platform/turns.ts';
import type { Logger } from '../platform/log.ts';
import type { PublishedState } from './agent-store.ts';
import { createAppliedRevisions } from './applied-revisions.ts';
import type { AppliedRevisions } from './applied-revisions.ts';
import type { Observations } from './observations.ts';
import type { HostPart } from './part.ts';
import { decodeStates } from './state-codec.ts';
import type { DecodedStates, StateCodec } from './state-codec.ts';
import { createStateQueue } from './state-queue.ts';

interface ApplierDeps {
  parts: HostPart[];
  codec: StateCodec;
  observations: Observations;
  log: Logger;
  /** Aborts when the agent stops or has lost its lease. */
  signal: AbortSignal;
}

export interface Applier {
  /** Brings the parts to exactly these states. Removals among them count as observed. @throws if it can decrypt none of them */
  converge(published: PublishedState[]): Promise<void>;
  /** Applies states, of which earlier revisions may have been applied. */
  apply(published: PublishedState[]): void;
  /** Resolves when nothing is being applied, except for what waits to be retried. */
  idle(): Promise<void>;
  /** How many resources are not at the last revision that was passed to the applier. */
  pending(): number;
  /** The keys that were not applied, or failed, at these revisions, and those that are not among them. */
  differences: AppliedRevisions['differences'];
}

const defaultConcurrency = 16;

/** Calls no part before `converge` or `apply`. */
export function createApplier({ parts, codec, observations, log, signal }: ApplierDeps): Applier {
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
    async converge(published) {
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
    apply(published) {
      for (const each of published) if (partOf.has(each.kind)) queue.add(each);
      recordOthers(published);
    },
    idle: queue.idle,
    pending: () => new Set([...applied.failed, ...queue.keys()]).size,
    differences: applied.differences,
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
