/**
 * Tags: written as a map, read as a sorted array. User tags follow RFC 7386 (JSON Merge Patch); read-only tags are set
 * by the system, survive everything a user sends, and an attempt to write one is refused.
 */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { invalidInput, notFound } from '../errors/catalogue.ts';
import type { FieldError } from '../errors/catalogue.ts';
import { Collection } from '../http/shapes.ts';

export const maxTags = 64;
export const maxTagLength = 255;
/** A patch may remove all tags and add as many. */
export const maxTagChanges = 2 * maxTags;
/** Keys that begin so are the system's own: nobody else may write one. */
const internalPrefix = 'cloudyard:';

/** The tag that names the policy which made a snapshot. */
export const policyTag = 'created_by_policy';
/** Tags that say something only because nobody but the system sets them. */
const systemTags: string[] = [policyTag];

/** As stored, in a jsonb column: key to value. */
export type Tags = Record<string, { value: string; read_only: boolean }>;

const TagValue = Type.String({ maxLength: maxTagLength });
const TagKey = Type.String({ minLength: 1, maxLength: maxTagLength });

export const CreateTags = Type.Record(Type.String(), TagValue, {
  propertyNames: TagKey,
  maxProperties: maxTags,
  title: 'CreateTags',
  description: 'Tags as a map from key to value: keys of 1 to 255 characters, values of up to 255, at most 64 tags',
  examples: [{ team: 'web' }],
});
export type CreateTags = Static<typeof CreateTags>;

export const UpdateTags = Type.Union(
  [
    Type.Record(Type.String(), Type.Union([TagValue, Type.Null()]), {
      propertyNames: TagKey,
      maxProperties: maxTagChanges,
    }),
    Type.Null(),
  ],
  {
    title: 'UpdateTags',
    description:
      'JSON Merge Patch (RFC 7386): a value adds or changes a tag, null removes it, and omitted tags are unchanged. Null ' +
      'instead of the map removes all user-managed tags. Read-only tags are always kept.',
  },
);
export type UpdateTags = Static<typeof UpdateTags>;

export const Tag = Type.Object(
  {
    key: Type.String({ description: 'Key of the tag' }),
    read_only: Type.Boolean({ description: 'Whether the system manages the tag' }),
    value: Type.String({ description: 'Value of the tag' }),
  },
  { title: 'Tag' },
);
export type Tag = Static<typeof Tag>;

export const TagCollection = Collection(Tag);

/** Sorted by key, so that a client that reads twice sees no difference. */
export function presentTags(tags: Tags): Tag[] {
  return Object.keys(tags)
    .sort()
    .map((key) => ({ key, read_only: tags[key]!.read_only, value: tags[key]!.value }));
}

/** The tags of a new resource. */
export function newTags(given: CreateTags | undefined): Tags {
  return mergeTags({}, given ?? {});
}

/**
 * What `current` becomes by a merge patch. `at` is the field of the request that the tags stand in; empty: the body.
 * @throws ClientError 400 when a read-only tag or one of the system's would be written, or there would be more than 64 tags
 */
export function mergeTags(current: Tags, patch: UpdateTags, at = 'tags'): Tags {
  if (patch === null) return readOnly(current);
  const errors: FieldError[] = [];
  const merged = new Map(Object.entries(current));
  for (const [key, value] of Object.entries(patch)) {
    const path = at ? `${at}.${key}` : key;
    if (merged.get(key)?.read_only) errors.push({ path, message: 'is a read-only tag' });
    else if (key.startsWith(internalPrefix)) errors.push({ path, message: 'is kept for the system' });
    else if (value === null) merged.delete(key);
    else if (systemTags.includes(key)) errors.push({ path, message: 'is set by the system' });
    else merged.set(key, { value, read_only: false });
  }
  if (merged.size > maxTags) errors.push({ path: at, message: `must NOT have more than ${maxTags} tags` });
  if (errors.length > 0) throw invalidInput(errors);
  // fromEntries defines own properties, so that a key such as `__proto__` is a key like any other.
  return Object.fromEntries(merged);
}

/** The tags when `replacement` takes the place of all user-managed ones. */
export function replaceTags(current: Tags, replacement: CreateTags, at?: string): Tags {
  return mergeTags(readOnly(current), replacement, at);
}

/** What becomes of the tags of one that exists, where they are the body itself. @throws ClientError 400, 404 */
export type TagChange = (current: Tags) => Tags;
const inBody = '';

/** Adds tags and changes them. */
export const merging =
  (tags: CreateTags): TagChange =>
  (current) =>
    mergeTags(current, tags, inBody);

/** Takes the place of all user-managed tags; null is as not given. */
export function replacingBy(tags: Record<string, string | null>): TagChange {
  const given = Object.entries(tags).filter((entry): entry is [string, string] => entry[1] !== null);
  return (current) => replaceTags(current, Object.fromEntries(given), inBody);
}

/** Without a key there is nothing to delete. */
export const deleting =
  (key: string | undefined): TagChange =>
  (current) => {
    if (key === undefined) return current;
    if (!Object.hasOwn(current, key)) throw notFound('tag', key);
    return mergeTags(current, { [key]: null }, 'key');
  };

function readOnly(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([, tag]) => tag.read_only));
}
