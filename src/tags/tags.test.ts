import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClientError } from '../errors/catalogue.ts';
import { deleting, maxTags, mergeTags, newTags, replacingBy, type Tags, toTagList } from './tags.ts';

/** Few keys, so that patches collide with existing tags; some are names of properties of every object. */
const key = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'c',
    'A',
    'é',
    '10',
    '9',
    ' ',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'length',
  ),
  fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' }),
);
const value = fc.string({ maxLength: 8 });
/** Like a result of JSON.parse: own properties only, which may include `__proto__`. */
const record = <T>(of: fc.Arbitrary<T>, maxKeys = 8): fc.Arbitrary<Record<string, T>> =>
  fc.uniqueArray(fc.tuple(key, of), { selector: ([k]) => k, maxLength: maxKeys }).map((e) => Object.fromEntries(e));
const tags: fc.Arbitrary<Tags> = record(fc.record({ value, read_only: fc.boolean() }));
const patch = fc.oneof({ weight: 8, arbitrary: record(fc.option(value)) }, { weight: 1, arbitrary: fc.constant(null) });

/** The tags as a Map, which shows a key such as `__proto__` too. */
const pairs = (from: Tags) => new Map(Object.entries(from).map(([k, tag]) => [k, tag.value]));
const readOnlyOf = (from: Tags) => Object.entries(from).filter(([, tag]) => tag.read_only);
const userOf = (from: Tags) => Object.entries(from).filter(([, tag]) => !tag.read_only);

/** A second implementation of RFC 7386, section 2, for one level of user tags. Undefined: the patch is invalid. */
function rfc7386(current: Tags, given: Record<string, string | null> | null): Map<string, string> | undefined {
  const result = new Map<string, string>();
  const frozen = new Set(readOnlyOf(current).map(([k]) => k));
  for (const [k, tag] of Object.entries(current)) if (given !== null || frozen.has(k)) result.set(k, tag.value);
  for (const [k, v] of given === null ? [] : Object.entries(given)) {
    if (frozen.has(k)) return undefined;
    if (v === null) result.delete(k);
    else result.set(k, v);
  }
  return result.size > 64 ? undefined : result;
}

function errorOf(work: () => unknown): ClientError {
  try {
    work();
  } catch (error) {
    if (error instanceof ClientError) return error;
    throw error;
  }
  throw new Error('expected a ClientError');
}

describe('a merge patch of tags', () => {
  it('follows RFC 7386, and fails only if it writes a read-only tag or exceeds the limit', () => {
    fc.assert(
      fc.property(tags, patch, (current, given) => {
        const expected = rfc7386(current, given);
        if (expected) expect(pairs(mergeTags(current, given))).toEqual(expected);
        else expect(errorOf(() => mergeTags(current, given)).status).toBe(400);
      }),
      { numRuns: 1000 },
    );
  });

  it('cannot set a system tag, and can remove one that is not read-only', () => {
    const current = { created_by_policy: { value: '1', read_only: false } };
    expect(newTags({ tags: { created_by_policy: '1' } }).errors).toEqual([
      { path: 'tags.created_by_policy', message: 'is set by the system' },
    ]);
    expect(errorOf(() => mergeTags(current, { created_by_policy: '2' }, '')).status).toBe(400);
    expect(mergeTags(current, { created_by_policy: null })).toEqual({});
  });

  it('name the parameter when a read-only tag is to be deleted by its key', () => {
    const current = { created_by_policy: { value: '1', read_only: true } };
    const { status, errors } = errorOf(() => deleting('created_by_policy')(current));
    expect([status, errors]).toEqual([400, [{ path: 'key', message: 'is a read-only tag' }]]);
  });

  it('of a new resource is `tags` or its other name `metadata`, but not two different ones', () => {
    const one = pairs(newTags({ tags: { a: '1' } }).tags);
    const same: Parameters<typeof newTags>[0][] = [
      { metadata: { a: '1' } },
      { tags: { a: '1' }, metadata: {} },
      { tags: {}, metadata: { a: '1' } },
      { tags: { a: '1' }, metadata: { a: '1' } },
    ];
    for (const given of same) expect(pairs(newTags(given).tags)).toEqual(one);
    expect(newTags({ tags: { a: '1' }, metadata: { b: '1' } }).errors).toEqual([
      { path: 'metadata', message: 'conflicts with tags; send only one' },
    ]);
    expect(newTags({ metadata: { created_by_policy: '1' } }).errors).toEqual([
      { path: 'metadata.created_by_policy', message: 'is set by the system' },
    ]);
  });

  it('never changes a read-only tag', () => {
    fc.assert(
      fc.property(tags, patch, (current, given) => {
        if (!rfc7386(current, given)) return;
        expect(readOnlyOf(mergeTags(current, given))).toEqual(readOnlyOf(current));
      }),
    );
  });

  it('removes all user tags and keeps read-only tags if it is null', () => {
    fc.assert(
      fc.property(tags, (current) => {
        expect(userOf(mergeTags(current, null))).toEqual([]);
        expect(readOnlyOf(mergeTags(current, null))).toEqual(readOnlyOf(current));
      }),
    );
  });

  it('is idempotent and does not modify its arguments', () => {
    fc.assert(
      fc.property(tags, patch, (current, given) => {
        const before = structuredClone([Object.entries(current), given && Object.entries(given)]);
        if (!rfc7386(current, given)) return;
        const once = mergeTags(current, given);
        expect(toTagList(mergeTags(once, given))).toEqual(toTagList(once));
        expect([Object.entries(current), given && Object.entries(given)]).toEqual(before);
      }),
    );
  });

  it('treats names such as __proto__ and constructor as ordinary keys, also after a JSON round trip', () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const given = JSON.parse(`{${JSON.stringify(name)}: "v"}`) as Record<string, string>;
      const stored = JSON.parse(JSON.stringify(newTags({ tags: given }).tags)) as Tags;
      expect(toTagList(stored)).toEqual([{ key: name, value: 'v', read_only: false }]);
      expect(toTagList(mergeTags(stored, { other: '1' })).map((tag) => tag.key)).toEqual([name, 'other'].sort());
      const removal = JSON.parse(`{${JSON.stringify(name)}: null}`) as Record<string, null>;
      expect(toTagList(mergeTags(stored, removal))).toEqual([]);
      expect(toTagList(mergeTags({}, removal))).toEqual([]);
    }
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  it('reports every read-only tag that it writes, also with the same value or null', () => {
    const current: Tags = { a: { value: '1', read_only: true }, b: { value: '2', read_only: true } };
    expect(errorOf(() => mergeTags(current, { a: '1', b: null, c: '3' })).errors).toEqual([
      { path: 'tags.a', message: 'is a read-only tag' },
      { path: 'tags.b', message: 'is a read-only tag' },
    ]);
  });

  it('allows 64 tags after its removals, including read-only ones', () => {
    const most = Object.fromEntries(Array.from({ length: maxTags }, (_, i) => [`k${i}`, 'v']));
    const full = newTags({ tags: most }).tags;
    full['k0'] = { value: 'v', read_only: true };
    expect(maxTags).toBe(64);
    expect(Object.keys(full)).toHaveLength(64);
    expect(errorOf(() => mergeTags(full, { another: 'v' }))).toMatchObject({ status: 400, errors: [{ path: 'tags' }] });
    expect(Object.keys(mergeTags(full, { another: 'v', k1: null }))).toHaveLength(64);
    expect(Object.keys(mergeTags(full, { k1: 'other' }))).toHaveLength(64);
  });
});

describe('replacing tags', () => {
  it('keeps read-only tags and sets the given ones, and fails if it writes a read-only tag', () => {
    fc.assert(
      fc.property(tags, record(value), (current, given) => {
        const clash = Object.keys(given).some((k) => readOnlyOf(current).some(([other]) => other === k));
        if (clash) expect(errorOf(() => replacingBy(given)(current)).status).toBe(400);
        else {
          const expected = new Map([
            ...readOnlyOf(current).map(([k, t]) => [k, t.value] as const),
            ...Object.entries(given),
          ]);
          expect(pairs(replacingBy(given)(current))).toEqual(expected);
        }
      }),
    );
  });
});

describe('tags in a response', () => {
  it('are unique and sorted by key, whatever their stored order', () => {
    fc.assert(
      fc.property(tags, fc.infiniteStream(fc.nat()), (current, random) => {
        const shuffled = Object.entries(current)
          .map((entry) => ({ entry, at: random.next().value }))
          .sort((a, b) => a.at - b.at)
          .map(({ entry }) => entry);
        const listed = toTagList(Object.fromEntries(shuffled));
        const keys = listed.map((tag) => tag.key);
        expect(new Set(keys)).toEqual(new Set(Object.keys(current)));
        for (const [i, k] of keys.entries()) if (i > 0) expect(keys[i - 1]! < k).toBe(true);
        expect(listed).toEqual(toTagList(current));
      }),
    );
  });
});
