/**
 * Computes the size of the largest valid body from its schema. json-body.ts reads bodies within these bounds, so a route
 * needs no limit of its own.
 *
 * Invariant: every array, map and string of a request schema is bounded; otherwise the app does not start.
 */
import type { TSchema } from 'typebox';
import { formats } from './formats.ts';

export interface BodyBounds {
  /** Bytes of the body. */
  bytes: number;
  /** Fields and list items, including nested ones. An empty object or list counts as one. */
  values: number;
  /** Fields of one object. */
  fields: number;
}

/** The largest body that a schema accepts, without punctuation. `values` and `fields`: as in `BodyBounds`. */
interface Extent {
  characters: number;
  values: number;
  fields: number;
}

const kib = 1024;
/** The largest limit of a route without `bodyLimit`. */
const defaultBodyLimit = kib * kib;
/** The length of an escaped character in JSON, such as `\u00e9`. */
const bytesPerCharacter = 6;
/** Punctuation and indentation around one field or list item. */
const bytesPerValue = 32;
/** Allows a body with some excess values, so that its errors can name the fields. */
const spareValues = 1000;
/** Validation of this number of values takes about 20 ms. */
const maxValues = 40_000;
/** Limits are multiples of this. */
const granularity = 64 * kib;

/** `operation` is for the message. @throws Error with the path of the unbounded part */
export function bodyBounds(schema: TSchema | undefined, operation: string, limit = defaultBodyLimit): BodyBounds {
  const { characters, values, fields } = schema ? extentOf(schema, `${operation}: body`) : none;
  const bytes = characters * bytesPerCharacter + values * bytesPerValue;
  return {
    bytes: Math.min(Math.ceil((bytes + 1) / granularity) * granularity, limit),
    values: Math.min(values + spareValues, maxValues),
    fields: fields + spareValues,
  };
}

/** Checks the schema of a path or query; `at` is for the message. @throws Error with the path of the unbounded part */
export function requireBounds(schema: TSchema | undefined, at: string): void {
  if (schema) extentOf(schema, at);
}

const none: Extent = { characters: 0, values: 0, fields: 0 };
const literalCharacters: Record<string, number> = { integer: 24, number: 24, boolean: 5, null: 4 };

interface JsonSchema {
  type?: string;
  anyOf?: TSchema[];
  const?: unknown;
  enum?: unknown[];
  format?: string;
  maxLength?: number;
  maxItems?: number;
  maxProperties?: number;
  items?: TSchema;
  properties?: Record<string, TSchema>;
  patternProperties?: Record<string, TSchema>;
  propertyNames?: TSchema;
}

function extentOf(given: TSchema, at: string): Extent {
  const schema = given as JsonSchema;
  if (schema.anyOf) return largest(schema.anyOf.map((branch) => extentOf(branch, at)));
  const literals = schema.enum ?? ('const' in schema ? [schema.const] : undefined);
  if (literals) return { ...none, characters: Math.max(...literals.map((each) => JSON.stringify(each).length)) };
  switch (schema.type) {
    case 'string': {
      const { maxLength = formats[schema.format ?? '']?.maxLength } = schema;
      return { ...none, characters: bound(maxLength, 'maxLength', at) };
    }
    case 'array': {
      const count = bound(schema.maxItems, 'maxItems', at);
      return container(count, times(count, extentOf(schema.items!, `${at}[]`)), 0);
    }
    case 'object':
      return schema.patternProperties ? extentOfMap(schema, at) : extentOfObject(schema, at);
    default: {
      const characters = literalCharacters[schema.type ?? ''];
      return { ...none, characters: bound(characters, 'known type', at) };
    }
  }
}

function extentOfMap({ maxProperties, propertyNames, patternProperties }: JsonSchema, at: string): Extent {
  const count = bound(maxProperties, 'maxProperties', at);
  const name = propertyNames ? extentOf(propertyNames, `${at} (name)`) : none;
  if (!propertyNames) bound(undefined, 'propertyNames', at);
  const value = largest(Object.values(patternProperties!).map((each) => extentOf(each, `${at}.*`)));
  return container(count, times(count, sum([name, value])), count);
}

function extentOfObject({ properties = {} }: JsonSchema, at: string): Extent {
  const fields = Object.entries(properties).map(([name, value]) =>
    sum([{ ...none, characters: name.length }, extentOf(value, `${at}.${name}`)]),
  );
  return container(fields.length, sum(fields), fields.length);
}

const container = (count: number, inner: Extent, fields: number): Extent => ({
  characters: inner.characters,
  values: inner.values + Math.max(count, 1),
  fields: Math.max(inner.fields, fields),
});

const times = (count: number, { characters, values, fields }: Extent): Extent => ({
  characters: characters * count,
  values: values * count,
  fields,
});

const sum = (all: Extent[]): Extent => ({
  characters: all.reduce((total, each) => total + each.characters, 0),
  values: all.reduce((total, each) => total + each.values, 0),
  fields: Math.max(0, ...all.map((each) => each.fields)),
});

const largest = (all: Extent[]): Extent => ({
  characters: Math.max(...all.map((each) => each.characters)),
  values: Math.max(...all.map((each) => each.values)),
  fields: Math.max(...all.map((each) => each.fields)),
});

function bound(value: number | undefined, keyword: string, at: string): number {
  if (value === undefined) throw new Error(`${at} has no ${keyword}`);
  return value;
}
