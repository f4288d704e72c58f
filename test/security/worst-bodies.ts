/** Generates the most expensive bodies to reject or accept from the schema of a request. */

export interface JsonSchema {
  type?: string;
  anyOf?: JsonSchema[];
  const?: unknown;
  enum?: unknown[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  maxLength?: number;
  maxItems?: number;
  maxProperties?: number;
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  patternProperties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
}

/** A list in a schema: the path to it, with `0` for the first item of an outer list. */
type Place = { path: string[]; schema: JsonSchema };

/** Writes a body of at most `bytes` bytes, or undefined if it does not apply to the schema. */
type Generator = (schema: JsonSchema, bytes: number) => string | undefined;

export const generators: Record<string, Generator> = {
  'too many objects in a list': (schema, bytes) => inDeepestList(schema, bytes, '{}'),
  'too many texts in a list': (schema, bytes) => inDeepestList(schema, bytes, '"x"'),
  'too many nulls in a list': (schema, bytes) => inDeepestList(schema, bytes, 'null'),
  'the maximum number of items, with invalid fields': (schema, bytes) =>
    cut(schema, bytes, (place) => wrongItem(place.items!)),
  'the maximum number of items, with 200 unknown fields': (schema, bytes) =>
    cut(schema, bytes, () => unknownFields(200)),
  'the maximum size of every field': (schema, bytes) => {
    for (const share of [1, 0.3, 0.1, 0.01, 0.001]) {
      const text = JSON.stringify(valid(schema, share));
      if (text.length <= bytes) return text;
    }
    return undefined;
  },
  'numbers instead of a body': (_schema, bytes) => list(bytes, '0'),
  'objects instead of a body': (_schema, bytes) => list(bytes, '{"a":0}'),
  'unknown fields': (_schema, bytes) => `{${repeat(bytes - 2, (i) => `"k${i}":0`)}}`,
  'as many unknown fields as are validated': (schema) => {
    const known = Object.keys(objectOf(schema).properties ?? {}).length;
    return unknownFields(990 - known);
  },
  'one field repeated': (schema, bytes) => {
    const [name = 'a'] = Object.keys(objectOf(schema).properties ?? {});
    return `{${repeat(bytes - 2, () => `${JSON.stringify(name)}:0`)}}`;
  },
  'fields of the prototype': (_schema, bytes) => `{${repeat(bytes - 30, () => '"a":{"constructor":0}')},"__proto__":0}`,
  'deep objects': (_schema, bytes) => `${'{"a":'.repeat(bytes / 6 - 1)}0${'}'.repeat(bytes / 6 - 1)}`,
  'deep lists': (_schema, bytes) => `${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`,
  'lists as deep as allowed': (_schema, bytes) => list(bytes, `${'['.repeat(48)}${']'.repeat(48)}`),
  'text that is too long in every field': (schema, bytes) => inEveryText(schema, bytes, (length) => 'a'.repeat(length)),
  'text that makes patterns backtrack': (schema, bytes) =>
    inEveryText(schema, bytes, (length) => `a.${'a'.repeat(length - 3)}!`),
  'text of maximum length that makes patterns backtrack': (schema) =>
    inEveryText(schema, Number.POSITIVE_INFINITY, (length) => `a@${'a'.repeat(Math.max(1, length - 3))}!`),
  'escaped text': (schema, bytes) => inEveryText(schema, bytes / 6, (length) => '\u0001'.repeat(length)),
  'halves of characters': (schema, bytes) => inEveryText(schema, bytes / 6, (length) => '\ud800'.repeat(length)),
  'a long number': (_schema, bytes) => '1'.repeat(bytes - 2),
  'a long fraction': (_schema, bytes) => `0.${'1'.repeat(bytes - 4)}e-300`,
  'text without an end': (_schema, bytes) => `"${'\\"'.repeat(bytes / 2 - 1)}`,
  'a broken body': (_schema, bytes) => `[${'['.repeat(10)}${repeat(bytes - 40, () => '{"a":1}')}`,
};

function repeat(bytes: number, item: (i: number) => string): string {
  const items: string[] = [];
  for (let length = 0; ; ) {
    const text = item(items.length);
    length += text.length + 1;
    if (length > bytes) return items.join(',');
    items.push(text);
  }
}

const list = (bytes: number, item: string) => `[${repeat(bytes - 2, () => item)}]`;
const unknownFields = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',')}}`;

/** The largest branch of a union. */
function objectOf(schema: JsonSchema): JsonSchema {
  if (!schema.anyOf) return schema;
  return schema.anyOf.map(objectOf).reduce((a, b) => (JSON.stringify(b).length > JSON.stringify(a).length ? b : a));
}

/** The most deeply nested list. */
function deepestList(schema: JsonSchema): Place | undefined {
  const one = objectOf(schema);
  if (one.type === 'array') {
    const inner = deepestList(one.items!);
    return inner ? { ...inner, path: ['0', ...inner.path] } : { path: [], schema: one };
  }
  return Object.entries(one.properties ?? {})
    .map(([name, value]) => [name, deepestList(value)] as const)
    .flatMap(([name, inner]) => (inner ? [{ ...inner, path: [name, ...inner.path] }] : []))
    .sort((a, b) => b.path.length - a.path.length)[0];
}

/** A body that contains only the path to its deepest list. */
function around(path: string[], inner: string): string {
  return path.reduceRight((text, name) => (name === '0' ? `[${text}]` : `{${JSON.stringify(name)}:${text}}`), inner);
}

function inDeepestList(schema: JsonSchema, bytes: number, item: string): string | undefined {
  const place = deepestList(schema);
  return place && around(place.path, list(bytes - around(place.path, '').length, item));
}

/** As many items as the schema allows and the size permits. */
function cut(schema: JsonSchema, bytes: number, item: (place: JsonSchema) => string): string | undefined {
  const place = deepestList(schema);
  if (!place) return undefined;
  const text = item(place.schema);
  const room = Math.floor((bytes - around(place.path, '').length - 2) / (text.length + 1));
  const count = Math.min(place.schema.maxItems ?? room, room);
  return around(place.path, `[${Array.from({ length: count }, () => text).join(',')}]`);
}

/** An item whose fields all have the wrong type: unions report each of their branches. */
function wrongItem(schema: JsonSchema): string {
  const one = objectOf(schema);
  if (!one.properties) return '[]';
  return JSON.stringify(Object.fromEntries(Object.keys(one.properties).map((name) => [name, []])));
}

/** Divides the bytes among the text fields. */
function inEveryText(schema: JsonSchema, bytes: number, text: (length: number) => string): string | undefined {
  const one = objectOf(schema);
  const fields = Object.entries(one.properties ?? {}).filter(([, field]) => isText(field));
  if (one.patternProperties) {
    const count = one.maxProperties ?? 64;
    const length = Math.min(255, Math.floor(bytes / count) - 20);
    return JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, text(length)])));
  }
  if (fields.length === 0) return undefined;
  const share = Math.floor(bytes / fields.length) - 100;
  return JSON.stringify(
    Object.fromEntries(
      fields.map(([name, field]) => [name, text(Math.max(4, Math.min(share, share > 1e9 ? longest(field) : share)))]),
    ),
  );
}

const isText = (schema: JsonSchema): boolean => schema.type === 'string' || (schema.anyOf?.some(isText) ?? false);
const longest = (schema: JsonSchema): number =>
  Math.max(schema.maxLength ?? 36, ...(schema.anyOf ?? []).map((branch) => longest(branch)));

const ofFormat: Record<string, string> = {
  uuid: '6f1c4a9e-8a44-4c5b-9f0e-3d9a3c1f0b7d',
  'date-time': '2030-01-01T00:00:00Z',
  'iso-date-time': '2030-01-01T00:00:00Z',
  email: `${'a'.repeat(60)}@${'b'.repeat(60)}.example`,
  uri: `https://example.com/${'a'.repeat(1900)}`,
  'ip-address': '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
  'ip-network': '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128',
  'ip-cidr': '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128',
};

/** A nearly valid body whose lists have `share` of their maximum number of items. */
function valid(schema: JsonSchema, share: number, seed = { i: 0 }): unknown {
  const one = objectOf(schema);
  seed.i += 1;
  if ('const' in one) return one.const;
  if (one.enum) return one.enum[seed.i % one.enum.length];
  switch (one.type) {
    case 'string': {
      if (one.format && ofFormat[one.format]) return ofFormat[one.format];
      const length = Math.min(one.maxLength ?? 20, one.maxLength && share === 1 ? one.maxLength : 200);
      return `a${seed.i.toString(36)}${'a'.repeat(length)}`.slice(0, length);
    }
    case 'integer':
    case 'number':
      return Math.max(one.minimum ?? 0, (one.exclusiveMinimum ?? -1) + 1);
    case 'boolean':
      return true;
    case 'array':
      return Array.from({ length: Math.ceil((one.maxItems ?? 0) * share) }, () => valid(one.items!, share, seed));
    case 'object': {
      const value = Object.values(one.patternProperties ?? {})[0];
      if (!value) {
        const fields = Object.entries(one.properties ?? {});
        return Object.fromEntries(fields.map(([name, field]) => [name, valid(field, share, seed)]));
      }
      const keys = Array.from({ length: one.maxProperties ?? 64 }, (_, i) => `k${i}${'k'.repeat(200)}`);
      return Object.fromEntries(keys.map((key) => [key, valid(value, share, seed)]));
    }
    default:
      return null;
  }
}
