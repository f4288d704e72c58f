/** Which revision of each state this host has applied, or failed to apply. */
import type { PublishedState } from './agent-store.ts';
import { observedError } from './observations.ts';
import type { Observations } from './observations.ts';
import { keyOf } from './store.ts';
import type { Key } from './store.ts';

export interface AppliedRevisions {
  /** Also reports it to the worker. `error`: null if the state was applied. */
  record(published: PublishedState, error: unknown): void;
  /** The keys of states whose last revision failed. */
  readonly failed: ReadonlySet<string>;
  /** The keys that are not at these revisions, and those that are not among them. */
  differences(published: (Key & { revision: number })[]): Key[];
}

/** Begins without revisions: a new session does not know what its predecessor applied. */
export function createAppliedRevisions(observations: Observations): AppliedRevisions {
  /** The revision of each state that is not removed. */
  const revisions = new Map<string, Key & { revision: number }>();
  const failed = new Set<string>();
  return {
    failed,
    record({ kind, id, revision, state }, error) {
      const key = keyOf({ kind, id });
      if (state === null && error === null) revisions.delete(key);
      else revisions.set(key, { kind, id, revision });
      if (error === null) failed.delete(key);
      else failed.add(key);
      observations.add({ kind, id, revision, error: error === null ? null : observedError(error) });
    },
    differences(published) {
      const keys = new Set(published.map(keyOf));
      return [
        ...published.filter((each) => revisions.get(keyOf(each))?.revision !== each.revision),
        ...[...revisions.values()].filter((each) => !keys.has(keyOf(each))).map(({ kind, id }) => ({ kind, id })),
      ];
    },
  };
}
