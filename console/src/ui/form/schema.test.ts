import { describe, expect, it } from 'vitest';
import { type JsonSchema, schemaAt, validate } from './schema.ts';

const schema: JsonSchema = {
  type: 'object',
  required: ['name', 'size'],
  properties: {
    name: { type: 'string', pattern: '^[a-z]+$', maxLength: 5, description: 'lower case `letters`' },
    size: { type: 'integer', minimum: 1, maximum: 10 },
    mode: { enum: ['ro', 'rw'] },
    rules: {
      type: 'array',
      maxItems: 2,
      items: { type: 'object', required: ['to'], properties: { to: { type: 'string', format: 'ip-network' } } },
    },
    tags: {
      type: 'object',
      propertyNames: { type: 'string', pattern: '^[^\\s=]+$', maxLength: 4 },
      additionalProperties: { type: 'string', maxLength: 3 },
    },
    hosts: {
      anyOf: [{ type: 'array', items: { type: 'object', required: ['address', 'port'] } }, { type: 'null' }],
    },
    note: { anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }], description: 'a note' },
  },
  additionalProperties: false,
};
const good = { name: 'abc', size: 3 };

describe('the validation of a form', () => {
  it.each([
    ['a missing field', { size: 3 }, 'name', 'is required'],
    ['a number below the minimum', { ...good, size: 0 }, 'size', 'must be at least 1'],
    ['a number above the maximum', { ...good, size: 11 }, 'size', 'must be at most 10'],
    ['a fraction', { ...good, size: 1.5 }, 'size', 'must be a whole number'],
    ['text instead of a number', { ...good, size: 'x' }, 'size', 'must be a whole number'],
    ['text that does not match', { ...good, name: 'A' }, 'name', 'lower case letters'],
    ['text that is too long', { ...good, name: 'abcdef' }, 'name', 'must have at most 5 characters'],
    ['a value outside the enum', { ...good, mode: 'x' }, 'mode', 'must be one of: ro, rw'],
    ['a field inside a list', { ...good, rules: [{ to: '10.0.0.0/24' }, { to: 'x' }] }, 'rules.1.to', /IP address/],
    [
      'a list that is too long',
      { ...good, rules: [{ to: '::1' }, { to: '::1' }, { to: '::1' }] },
      'rules',
      /at most 2/,
    ],
    ['a key of a map', { ...good, tags: { abcde: 'x' } }, 'tags.abcde', /at most 4/],
    ['a value of a map', { ...good, tags: { a: 'xxxx' } }, 'tags.a', /at most 3/],
    ['the best alternative of a union', { ...good, note: 'xxxx' }, 'note', /at most 3/],
    ['an unknown field', { ...good, other: 1 }, 'other', 'is not a field of this operation'],
  ])('names %s', (_, value, path, message) => {
    const problems = validate(schema, value);
    expect(problems.map((problem) => problem.path)).toEqual([path]);
    expect(problems[0]!.message).toMatch(message);
  });

  it('accepts what the schema allows, with null and emoji counted as one character', () => {
    expect(validate(schema, { ...good, note: null, tags: { a: '😀😀😀' }, rules: [] })).toEqual([]);
  });

  it('leaves a pattern without a description to the server, which has words for it', () => {
    expect(validate(schema, { ...good, tags: { 'a b': 'x' } })).toEqual([]);
  });

  it('returns all problems at once', () => {
    expect(validate(schema, { name: 'A', size: 0 }).map(({ path }) => path)).toEqual(['name', 'size']);
    // Null would have one problem, the list has two.
    const inList = validate(schema, { ...good, hosts: [{}] });
    expect(inList.map(({ path }) => path)).toEqual(['hosts.0.address', 'hosts.0.port']);
  });
});

describe('the schema of a field', () => {
  it('is found inside lists, and without null in a union', () => {
    expect(schemaAt(schema, 'rules.7.to')).toMatchObject({ format: 'ip-network' });
    expect(schemaAt(schema, 'note')).toMatchObject({ type: 'string', maxLength: 3, description: 'a note' });
    expect(schemaAt(schema, 'missing')).toBeUndefined();
  });
});
