/**
 * Applies published states on a host with its parts: the latest revision of each resource, different resources side by side.
 *
 * Invariant: calls for one resource never overlap, and a revision is observed only after it, or a later one, was applied.
 *
 * Failure modes: a retryable error is observed and retried with backoff until it succeeds or a new revision arrives; a
 * permanent one is observed and waits for a new revision.
 */
import { limited } from '../drivers/turns.ts';
import type { Logger } from '../platform/log.ts';
import type { PublishedState } from './agent-store.ts';
import { observedError } from './observations.ts';
import type { Observations } from './observations.ts';
import type { HostPart } from './part.ts';
import type { StateCodec } from './state-codec.ts';
import type { Key } from './store.ts';

interface ApplierDeps {
  parts: HostPart[];
  codec: StateCodec;
  observations: Observations;
  log: Logger;
  /** Aborts when the agent stops or has lost its lease. */
  signal: AbortSignal;
}

/** A resource that is being applied, or that has to be. */
interface Item {
  published: PublishedState;
  attempts: number;
  timer: NodeJS.Timeout | null;
}

export interface Applier {
  /** Brings the parts to exactly these states. Removals among them count as observed. */
  converge(published: PublishedState[]): Promise<void>;
  /** Applies states, of which earlier revisions may have been applied. */
  apply(published: PublishedState[]): void;
  /** Resolves when nothing is being applied, except for what waits to be retried. */
  idle(): Promise<void>;
  /** How many resources are not at the last revision that was passed to the applier. */
  pending(): number;
  /** The keys that were not applied, or failed, at these revisions, and those that are not among them. */
  differences(published: (Key & { revision: number })[]): Key[];
}

const defaultConcurrency = 16;
const firstRetryMs = 1000;
const lastRetryMs = 30_000;
const keyOf = ({ kind, id }: Key) => `${kind}\n${id}`;

export function createApplier({ parts, codec, observations, log, signal }: ApplierDeps): Applier {
  const partOf = new Map(parts.flatMap((part) => (part.kind === null ? [] : [[part.kind as string, part]])));
  const turns = new Map([...partOf].map(([kind, part]) => [kind, limited(part.concurrency ?? defaultConcurrency)]));
  const items = new Map<string, Item>();
  /** The revision of each state that is not removed. */
  const revisions = new Map<string, number>();
  /** The last revision of these failed. */
  const failed = new Set<string>();
  const idleCallers: (() => void)[] = [];
  let active = 0;

  const record = ({ kind, id, revision, state }: PublishedState, error: unknown) => {
    if (state === null && error === null) revisions.delete(keyOf({ kind, id }));
    else revisions.set(keyOf({ kind, id }), revision);
    if (error === null) failed.delete(keyOf({ kind, id }));
    else failed.add(keyOf({ kind, id }));
    observations.add({ kind, id, revision, error: error === null ? null : observedError(error) });
  };

  const enqueue = (item: Item) => {
    const { kind } = item.published;
    const part = partOf.get(kind);
    if (!part) {
      // This host serves nothing of this kind.
      record(item.published, null);
      return void items.delete(keyOf(item.published));
    }
    active += 1;
    void turns.get(kind)!(() => run(part, item)).finally(() => {
      active -= 1;
      if (active === 0) for (const resolve of idleCallers.splice(0)) resolve();
    });
  };
  const run = async (part: HostPart, item: Item) => {
    const { published } = item;
    const error = await applyOne(part, published);
    if (signal.aborted) return;
    record(published, error);
    // A newer revision arrived meanwhile.
    if (item.published !== published) return enqueue(item);
    if (error === null || !observedError(error).retryable) return void items.delete(keyOf(published));
    retryLater(item, error);
  };
  const applyOne = async (part: HostPart, { kind, id, state }: PublishedState): Promise<unknown> => {
    if (signal.aborted) return signal.reason;
    try {
      await part.apply(id, state && codec.decode({ kind, id }, state), signal);
      return null;
    } catch (error) {
      return error;
    }
  };
  const retryLater = (item: Item, error: unknown) => {
    const { kind, id, revision } = item.published;
    const delay = Math.min(firstRetryMs * 2 ** item.attempts++, lastRetryMs);
    log.warn({ err: error, kind, id, revision, retryMs: delay }, 'a published state was not applied');
    item.timer = setTimeout(() => {
      item.timer = null;
      enqueue(item);
    }, delay);
  };
  const apply = (published: PublishedState) => {
    const key = keyOf(published);
    const item = items.get(key);
    if (!item) {
      const created = { published, attempts: 0, timer: null };
      items.set(key, created);
      return enqueue(created);
    }
    item.published = published;
    item.attempts = 0;
    if (item.timer) {
      clearTimeout(item.timer);
      item.timer = null;
      enqueue(item);
    }
  };
  signal.addEventListener('abort', () => {
    for (const { timer } of items.values()) if (timer) clearTimeout(timer);
  });

  const convergePart = async (part: HostPart, published: PublishedState[]) => {
    const { states, undecodable } = decodeAll(codec, published);
    const failed = await part.converge(states, signal);
    signal.throwIfAborted();
    for (const each of published) {
      const error = failed.get(each.id) ?? undecodable.get(each.id) ?? null;
      record(each, error);
      if (error === null || !observedError(error).retryable) continue;
      const item = { published: each, attempts: 0, timer: null };
      items.set(keyOf(each), item);
      retryLater(item, error);
    }
  };

  const differences = (published: (Key & { revision: number })[]): Key[] => {
    const keys = new Set(published.map(keyOf));
    const changed: Key[] = published.filter((each) => revisions.get(keyOf(each)) !== each.revision);
    for (const key of revisions.keys()) {
      const [kind = '', id = ''] = key.split('\n');
      if (!keys.has(key)) changed.push({ kind, id });
    }
    return changed;
  };
  return {
    async converge(published) {
      const byKind = Map.groupBy(published, ({ kind }) => kind);
      const converged = await Promise.allSettled(
        [...partOf].map(([kind, part]) => convergePart(part, byKind.get(kind) ?? [])),
      );
      for (const each of converged) if (each.status === 'rejected') throw each.reason;
      for (const each of published) if (!partOf.has(each.kind)) record(each, null);
    },
    apply: (published) => published.forEach(apply),
    async idle() {
      if (active > 0) await new Promise<void>((resolve) => idleCallers.push(resolve));
    },
    pending: () => new Set([...failed, ...items.keys()]).size,
    differences,
  };
}

function decodeAll(codec: StateCodec, published: PublishedState[]) {
  const states = new Map<string, unknown>();
  const undecodable = new Map<string, Error>();
  for (const { kind, id, state } of published) {
    if (state === null) continue;
    try {
      states.set(id, codec.decode({ kind, id }, state));
    } catch (error) {
      undecodable.set(id, error as Error);
    }
  }
  return { states, undecodable };
}
