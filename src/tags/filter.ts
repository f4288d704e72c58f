/** Filters lists by tags: the query parameters, their parser, and the SQL conditions. */
import { sql, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { Type } from 'typebox';
import { type FieldError, requireNoErrors } from '../errors/catalogue.ts';
import { isStorable, storableText } from '../platform/storable-text.ts';
import { maxTags, TagKey } from './tags.ts';

/** Leaves room in the 16 KiB that the path and the headers share. */
const maxPairsLength = 4096;

/** Query parameters that filter by tags. The Terraform provider sends the deprecated names. */
export const TagFilterQuery = {
  tag_key: Type.Optional(
    Type.Array(TagKey, {
      maxItems: maxTags,
      description: 'Only resources that have a tag with this key; repeat the parameter to require several keys',
    }),
  ),
  tag_key_value: Type.Optional(
    Type.String({
      maxLength: maxPairsLength,
      description: 'Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test`',
    }),
  ),
  metadata_k: Type.Optional(Type.String({ ...TagKey, deprecated: true, description: 'Use `tag_key`' })),
  metadata_kv: Type.Optional(
    Type.String({ maxLength: maxPairsLength, deprecated: true, description: 'Use `tag_key_value`' }),
  ),
};

/** A listed resource must have all of these keys, and all of these keys with these values. */
export interface TagFilter {
  keys: string[];
  pairs: Record<string, string>;
}

/** Conditions on a column of tags (tags/tags.ts). */
export function hasTags(column: PgColumn, { keys, pairs }: TagFilter): SQL[] {
  const conditions: SQL[] = [];
  if (keys.length > 0) conditions.push(sql`${column} ?& ${sql.param(keys)}::text[]`);
  const wanted = Object.entries(pairs).map(([key, value]) => [key, { value }]);
  if (wanted.length > 0) conditions.push(sql`${column} @> ${JSON.stringify(Object.fromEntries(wanted))}::jsonb`);
  return conditions;
}

type TagQuery = { tag_key?: string[]; tag_key_value?: string; metadata_k?: string; metadata_kv?: string };

/** Parses the filter. @throws ClientError 400 that names each field that is neither a JSON object of strings nor `key=value` */
export function tagFilterOf(query: TagQuery): TagFilter {
  const errors: FieldError[] = [];
  const pairs = {
    ...pairsOf('tag_key_value', query.tag_key_value, errors),
    ...pairsOf('metadata_kv', query.metadata_kv, errors),
  };
  requireNoErrors(errors);
  return { keys: [...(query.tag_key ?? []), ...(query.metadata_k === undefined ? [] : [query.metadata_k])], pairs };
}

/** Adds to `errors`. */
function pairsOf(path: string, text: string | undefined, errors: FieldError[]): Record<string, string> {
  if (text === undefined) return {};
  if (!text.trimStart().startsWith('{')) {
    const at = text.indexOf('=');
    if (at > 0) return { [text.slice(0, at)]: text.slice(at + 1) };
  }
  const pairs = parseJson(text);
  const isMap = pairs !== null && typeof pairs === 'object' && !Array.isArray(pairs);
  if (!isMap || Object.values(pairs).some((value) => typeof value !== 'string')) {
    errors.push({ path, message: 'must be a JSON object of strings such as {"env":"test"}, or env=test' });
    return {};
  }
  // The schema checked the raw text; JSON escapes can still decode to text that PostgreSQL cannot store.
  if (!Object.entries(pairs).flat().every(isStorable)) errors.push({ path, message: storableText });
  return pairs as Record<string, string>;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
