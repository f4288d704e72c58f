/** What a client may observe, one sequential specification for each kind of history. */
import type { Specification } from './checker.ts';

export interface Result {
  status: number;
  /** The part of the response that the specification compares. */
  value?: unknown;
}

/** A name: PATCH and GET of one network. */
export type NameInput = { op: 'set'; name: string } | { op: 'get' };
export const nameSpecification: Specification<string, NameInput, Result> = {
  initial: 'first',
  step(state, input, output) {
    if (input.op === 'set') return output === null || output.status === 200 ? [input.name] : [];
    return output === null || output.value === state ? [state] : [];
  },
  keyOf: (state) => state,
};

/** Tags: merges, removals and reads of one network's tags. */
type Tags = Record<string, string>;
export type TagsInput = { op: 'merge'; tags: Tags } | { op: 'remove'; key: string } | { op: 'get' };
const sorted = (tags: Tags) => JSON.stringify(Object.entries(tags).sort());
export const tagsSpecification: Specification<Tags, TagsInput, Result> = {
  initial: {},
  step(state, input, output) {
    if (input.op === 'merge') return [{ ...state, ...input.tags }];
    if (input.op === 'get') return output === null || sorted(output.value as Tags) === sorted(state) ? [state] : [];
    const { [input.key]: removed, ...rest } = state;
    const expected = removed === undefined ? 404 : 204;
    return output === null || output.status === expected ? [rest] : [];
  },
  keyOf: sorted,
};

/** A quota: creates and deletions of secrets, changes of the limit, and reads of the usage. */
interface Quota {
  limit: number;
  ids: string[];
}
export type QuotaInput =
  | { op: 'create' }
  | { op: 'delete'; id: string }
  | { op: 'limit'; limit: number }
  | { op: 'usage' };
export const quotaSpecification: Specification<Quota, QuotaInput, Result> = {
  initial: { limit: 3, ids: [] },
  step(state, input, output) {
    if (input.op === 'limit') return [{ ...state, limit: input.limit }];
    if (input.op === 'usage') return output === null || output.value === state.ids.length ? [state] : [];
    if (input.op === 'delete') {
      const exists = state.ids.includes(input.id);
      if (output !== null && output.status !== (exists ? 200 : 404)) return [];
      return [{ ...state, ids: state.ids.filter((id) => id !== input.id) }];
    }
    const fits = state.ids.length < state.limit;
    // The id of a lost create is unknown; nothing deletes it.
    if (output === null) return fits ? [{ ...state, ids: [...state.ids, 'lost'] }] : [state];
    if (output.status !== (fits ? 200 : 409)) return [];
    return fits ? [{ ...state, ids: [...state.ids, String(output.value)] }] : [state];
  },
  keyOf: ({ limit, ids }) => `${limit} ${[...ids].sort().join()}`,
};

/** Unique names: creates and deletions of API keys with few names. */
export type KeysInput = { op: 'create' | 'delete'; name: string } | { op: 'list' };
export const keysSpecification: Specification<string[], KeysInput, Result> = {
  initial: [],
  step(state, input, output) {
    if (input.op === 'list') return output === null || String(output.value) === String(state) ? [state] : [];
    const exists = state.includes(input.name);
    const others = state.filter((name) => name !== input.name);
    const expected = input.op === 'create' ? (exists ? 409 : 200) : exists ? 204 : 404;
    if (output !== null && output.status !== expected) return [];
    return [input.op === 'create' ? [...others, input.name].sort() : others];
  },
  keyOf: String,
};

/** Idempotent repeats: creates with few keys, each at most once; the response names the resource. */
interface Claims {
  ids: Record<string, string>;
}
export type ClaimInput = { op: 'create'; key: string } | { op: 'count' };
export const claimSpecification: Specification<Claims, ClaimInput, Result> = {
  initial: { ids: {} },
  step({ ids }, input, output) {
    const count = Object.keys(ids).length;
    if (input.op === 'count') return output === null || output.value === count ? [{ ids }] : [];
    const id = ids[input.key];
    if (id !== undefined && id !== 'lost') return output === null || output.value === id ? [{ ids }] : [];
    if (output === null) return [{ ids: { ...ids, [input.key]: 'lost' } }];
    // A repeat reveals the id of a lost create.
    const isNew = !Object.values(ids).includes(String(output.value));
    return output.status === 200 && isNew ? [{ ids: { ...ids, [input.key]: String(output.value) } }] : [];
  },
  keyOf: ({ ids }) => sorted(ids),
};

/** A lock: extensions of one share. A task holds the lock until it has ended, which responses do not show. */
interface Lock {
  size: number;
  task: string | null;
}
export type LockInput = { op: 'extend'; size: number } | { op: 'end'; task: string };
export const lockSpecification: Specification<Lock, LockInput, Result> = {
  initial: { size: 1, task: null },
  step(state, input, output) {
    if (input.op === 'end') return state.task === input.task ? [{ ...state, task: null }] : [];
    if (output === null) return [state];
    if (output.status === 409) return state.task === output.value ? [state] : [];
    if (state.task !== null) return [];
    if (output.status === 400) return input.size < state.size ? [state] : [];
    if (output.value === null) return input.size === state.size ? [state] : [];
    return input.size > state.size ? [{ size: input.size, task: String(output.value) }] : [];
  },
  keyOf: ({ size, task }) => `${size} ${task}`,
};
