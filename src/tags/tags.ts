/**
 * Tags: requests contain a map, responses a sorted array. Updates of user tags follow RFC 7386 (JSON Merge Patch).
 *
 * Invariant: only the system sets read-only tags. No request changes or removes one, and a request that writes one fails.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Static, Type } from 'typebox';
import { pattern } from '../http/patterns.ts';
import { type FieldError, notFound, requireNoErrors } from '../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../errors/valid-fields.ts';
import { Collection, Component, Described, Page } from '../http/shapes.ts';

export const maxTags = 64;
export const maxTagLength = 255;
/** A patch may remove all tags and add the same number. */
export const maxTagChanges = 2 * maxTags;
/** Prefix of the keys that are reserved for the system. */
const internalPrefix = 'cloudyard:';

/** The tag with the ID of the policy that created a snapshot. */
export const policyTag = 'created_by_policy';
/** Tags that requests may remove but not set, because they are evidence of the origin of a resource. */
const systemTags: string[] = [policyTag];

/** As stored in a jsonb column, by key. */
export type Tags = Record<string, { value: string; read_only: boolean }>;

/** The characters of keys and values. */
export function lengthOfTags(tags: Tags): number {
  let length = 0;
  for (const key in tags) length += key.length + tags[key]!.value.length;
  return length;
}

export const TagKey = Type.String({
  maxLength: maxTagLength,
  pattern: pattern('^[^\\s=]+$', '1 to 255 characters without whitespace and `=`'),
});
/** Also the keys that `TagKey` rejects: version 0.2.0 accepted them, and the metadata of load balancers has them. */
export const AnyTagKey = Type.String({ minLength: 1, maxLength: maxTagLength });
const space = '\\t\\n\\r\\f\\v';
const TagValue = Type.String({
  maxLength: maxTagLength,
  pattern: pattern(
    `^[^ ${space}]([^${space}]*[^ ${space}])?$`,
    '1 to 255 characters without tabs and line breaks, and without spaces at the ends',
  ),
});

export const CreateTags = Type.Record(Type.String(), TagValue, {
  propertyNames: TagKey,
  maxProperties: maxTags,
  title: 'CreateTags',
  description:
    'At most 64 tags as a map from key to value, each of 1 to 255 characters. Keys have no whitespace and no `=`; values ' +
    'have no space at the ends, no tab and no line break.',
  examples: [{ team: 'web' }],
});
export type CreateTags = Static<typeof CreateTags>;

/** The fields of a create request that set tags. */
export const newTagFields = {
  tags: Type.Optional(CreateTags),
  metadata: Type.Optional(Described(CreateTags, 'Another name for `tags`, which the Terraform provider sends')),
};

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

export const Tag = Component('Tag', {
  key: Type.String({ description: 'Key of the tag' }),
  read_only: Type.Boolean({ description: 'Whether the system manages the tag' }),
  value: Type.String({ description: 'Value of the tag' }),
});
export type Tag = Static<typeof Tag>;

export const TagCollection = Collection(Tag);

/** Sorted by key, so that repeated reads return equal lists. */
export function toTagList(tags: Tags): Tag[] {
  return Object.keys(tags)
    .sort()
    .map((key) => ({ key, read_only: tags[key]!.read_only, value: tags[key]!.value }));
}

/** The values by key: tags as older clients read them. */
export function toTagMap(tags: Tags): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).map(([key, { value }]) => [key, value]));
}

/** @throws ClientError 404 */
export function tagWithKey(tags: Tags, key: string): Tag {
  const tag = toTagList(tags).find((candidate) => candidate.key === key);
  if (!tag) throw notFound('tag', key);
  return tag;
}

/** A page of the tags, sorted by key. */
export function pageOfTags(tags: Tags, { limit = maxTags, offset = 0 }: Static<typeof Page>) {
  const all = toTagList(tags);
  return { count: all.length, results: all.slice(offset, offset + limit) };
}

/** Tags, and why they are refused. */
interface Merged {
  tags: Tags;
  errors: FieldError[];
}

/**
 * The tags of a new resource. `metadata` is another name for `tags`; some clients send both, one of them empty. The caller
 * refuses the errors together with those of other fields.
 */
export function newTags({ tags = {}, metadata = {} }: { tags?: CreateTags; metadata?: CreateTags }): Merged {
  if (isEmpty(metadata)) return merge({}, tags, 'tags');
  const merged = merge({}, metadata, 'metadata');
  if (isEmpty(tags) || isDeepStrictEqual(tags, metadata)) return merged;
  return { ...merged, errors: [{ path: 'metadata', message: 'conflicts with tags; send only one' }] };
}

/** The errors of `newTags` for a body without its invalid fields. */
export function errorsOfNewTags(
  { tags, metadata }: { tags?: ValidFields<CreateTags> | undefined; metadata?: ValidFields<CreateTags> | undefined },
  isInvalid: IsInvalid,
): FieldError[] {
  const { errors } = newTags({ ...(tags && { tags }), ...(metadata && { metadata }) } as Parameters<typeof newTags>[0]);
  // Their rest may differ although they were equal.
  const isPartial = isInvalid('tags') || isInvalid('metadata');
  return errors.filter(({ path }) => !(isPartial && path === 'metadata'));
}

/** The errors of `mergeTags` for the tags of an update without its invalid fields, whatever the current tags are. */
export function errorsOfTagPatch({ tags }: { tags?: ValidFields<UpdateTags> | undefined }): FieldError[] {
  return tags ? merge({}, tags as UpdateTags, 'tags').errors : [];
}

/** The errors of `merging` and `replacingBy` for a map of tags without its invalid fields, whatever the current tags are. */
export function errorsOfTagMap(tags: ValidFields<UpdateTags>): FieldError[] {
  return merge({}, withoutNulls((tags ?? {}) as Exclude<UpdateTags, null>), inBody).errors;
}

const isEmpty = (tags: CreateTags) => Object.keys(tags).length === 0;

/**
 * Applies a merge patch. `at`: the request field that contains the tags; empty: the body. `others`: errors of other fields.
 * @throws ClientError 400 with all errors if the patch writes a read-only or system tag, or the result has more than 64 tags
 */
export function mergeTags(current: Tags, patch: UpdateTags, at = 'tags', others: FieldError[] = []): Tags {
  const { tags, errors } = merge(current, patch, at);
  requireNoErrors([...others, ...errors]);
  return tags;
}

function merge(current: Tags, patch: UpdateTags, at: string): Merged {
  if (patch === null) return { tags: readOnly(current), errors: [] };
  const errors: FieldError[] = [];
  const merged = new Map(Object.entries(current));
  for (const [key, value] of Object.entries(patch)) {
    const path = at ? `${at}.${key}` : key;
    if (merged.get(key)?.read_only) errors.push({ path, message: 'is a read-only tag' });
    else if (key.startsWith(internalPrefix)) errors.push({ path, message: 'is reserved for the system' });
    else if (value === null) merged.delete(key);
    else if (systemTags.includes(key)) errors.push({ path, message: 'is set by the system' });
    else merged.set(key, { value, read_only: false });
  }
  if (merged.size > maxTags) errors.push({ path: at, message: `must have at most ${maxTags} tags` });
  // fromEntries defines own properties, so a key such as `__proto__` is an ordinary key.
  return { tags: Object.fromEntries(merged), errors };
}

/** Changes the tags of an existing resource, where the request body is the map of tags. @throws ClientError 400, 404 */
export type TagChange = (current: Tags) => Tags;
const inBody = '';

/** Adds or changes tags. */
export const merging =
  (tags: CreateTags): TagChange =>
  (current) =>
    mergeTags(current, tags, inBody);

/** Replaces all user-managed tags; entries whose value is null are ignored. */
export function replacingBy(tags: Record<string, string | null>): TagChange {
  const given = withoutNulls(tags);
  return (current) => mergeTags(readOnly(current), given, inBody);
}

function withoutNulls(tags: Record<string, string | null>): CreateTags {
  const given = Object.entries(tags).filter((entry): entry is [string, string] => entry[1] !== null);
  return Object.fromEntries(given);
}

/** Deletes one tag. Without a key it changes nothing. */
export const deleting =
  (key: string | undefined): TagChange =>
  (current) => {
    if (key === undefined) return current;
    if (!Object.hasOwn(current, key)) throw notFound('tag', key);
    const { tags, errors } = merge(current, { [key]: null }, '');
    requireNoErrors(errors.map(({ message }) => ({ path: 'key', message })));
    return tags;
  };

function readOnly(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([, tag]) => tag.read_only));
}
