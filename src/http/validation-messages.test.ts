/** The errors of bodies that do not match their schemas, in plain words, one for each invalid field. */
import { type TSchema, Type } from 'typebox';
import { expect, it } from 'vitest';
import { pattern } from './patterns.ts';
import { Nullable, Uuid } from './shapes.ts';
import { compileValidator } from './validation.ts';

function errorsOf(field: TSchema, value: unknown, httpPart = 'body'): string[] {
  const check = compileValidator({ schema: Type.Object({ a: field }), httpPart });
  const result = check({ a: value });
  return result === true ? [] : result.error.errors.map(({ path, message }) => `${path} ${message}`);
}

const text = Type.String({ minLength: 1, maxLength: 3 });
const list = Type.Array(Type.Integer(), { minItems: 1, maxItems: 2 });
const map = Type.Record(Type.String(), Type.String(), { minProperties: 2, maxProperties: 2 });
const number = Type.Number({ minimum: 1, exclusiveMaximum: 2 });
const size = Type.Integer({ exclusiveMinimum: 0, maximum: 5 });
const empty = Type.Union([Type.Literal(''), Uuid]);
const word = Nullable(Type.String({ pattern: pattern('^[a-z]*$', 'letters without spaces at the ends') }));
const version = Nullable(Type.Enum(['1.0', '1.1']));
const ids = Nullable(Type.Array(Uuid, { minItems: 1 }));
const address = Type.Union([
  Type.Object({ source: Type.Literal('new') }, { additionalProperties: false }),
  Type.Object({ source: Type.Literal('existing'), id: empty }, { additionalProperties: false }),
]);

const cases: [field: TSchema, value: unknown, errors: string[]][] = [
  [text, '', ['a must have at least 1 character']],
  [text, 'four', ['a must have at most 3 characters']],
  [list, [], ['a must have at least 1 item']],
  [list, [1, 2, 3], ['a must have at most 2 items']],
  [list, ['x'], ['a.0 must be an integer']],
  [map, { a: '1' }, ['a must have at least 2 entries']],
  [map, { a: '1', b: '2', c: '3' }, ['a must have at most 2 entries']],
  [number, 0, ['a must be at least 1']],
  [number, 2, ['a must be less than 2']],
  [number, '1', ['a must be a number']],
  [size, 0, ['a must be greater than 0']],
  [size, 6, ['a must be at most 5']],
  [Type.Boolean(), 1, ['a must be true or false']],
  [Type.Literal(true), null, ['a must be true']],
  [Type.Enum(['x']), 1, ['a must be "x"']],
  [empty, null, ['a must be empty or a UUID']],
  [empty, 'x', ['a must be empty or a UUID']],
  [empty, '', []],
  [version, '2', ['a must be one of "1.0", "1.1"']],
  [version, 2, ['a must be one of "1.0", "1.1" or null']],
  [word, 'A', ['a must be letters without spaces at the ends']],
  [word, 1, ['a must be a string or null']],
  [word, {}, ['a must be a string or null']],
  [word, null, []],
  [Nullable(size), 6, ['a must be at most 5']],
  [Nullable(size), 1.5, ['a must be an integer']],
  [Nullable(size), 'x', ['a must be an integer or null']],
  [ids, [], ['a must have at least 1 item']],
  [ids, [1, 'x'], ['a.0 must be a string', 'a.1 must be a UUID']],
  [ids, 'x', ['a must be a list or null']],
  [address, { source: 'new', id: 1 }, ['a.id is not a known field']],
  [address, { source: 'existing' }, ['a.id is required']],
  [address, { source: 'existing', id: 1 }, ['a.id must be empty or a UUID']],
  [address, { source: 'foo', id: 1 }, ['a.source must be one of "new", "existing"']],
  [address, {}, ['a.source is required']],
  [address, [], ['a must be an object']],
  [Nullable(Type.Object({ b: Nullable(text) })), { b: '' }, ['a.b must have at least 1 character']],
  [Type.Array(empty), [null, '', 'x'], ['a.0 must be empty or a UUID', 'a.2 must be empty or a UUID']],
];

it.each(cases.map(([field, value, errors], i) => [i, value, errors, field] as const))(
  'case %i: %j has the errors %j',
  (_i, value, errors, field) => {
    expect(errorsOf(field, value)).toEqual(errors);
  },
);

it('a parameter of the query has one error, too', () => {
  expect(errorsOf(empty, 'x', 'querystring')).toEqual(['a must be empty or a UUID']);
  expect(errorsOf(empty, '', 'querystring')).toEqual([]);
});

it('an invalid key is reported next to one that is too long', () => {
  const keys = Type.String({ maxLength: 3, pattern: pattern('^[a-z]*$', 'letters') });
  const map = Type.Record(Type.String(), text, { propertyNames: keys });
  expect(errorsOf(map, { 'a b': 'x', abcd: 'x' })).toEqual([
    'a.a b the key must be letters',
    'a.abcd the key must have at most 3 characters',
  ]);
});

it.each([
  ['', 'the key must have at least 1 character'],
  ['a b', 'the key must be 1 to 3 letters'],
])('an error of a key says that it is about the key: %j', (key, message) => {
  const keys = Type.String({ minLength: 1, ...(key !== '' && { pattern: pattern('^[a-z]{1,3}$', '1 to 3 letters') }) });
  const map = Type.Record(Type.String(), text, { propertyNames: keys });
  expect(errorsOf(map, { [key]: 'x' })).toEqual([`a.${key} ${message}`]);
});

it('text that cannot be stored is reported next to other errors, but not in fields that have one', () => {
  const item = Type.Object({ b: text, c: Type.Optional(text) }, { additionalProperties: false });
  const unstorable = 'must not contain NUL characters or unpaired surrogates';
  expect(errorsOf(Type.Array(item), [{ b: '', c: '\0' }, { b: '\ud800', d: '\0', 'x\ud800': 1 }, 'four\0'])).toEqual([
    'a.0.b must have at least 1 character',
    'a.1.d is not a known field',
    'a.1.x\ud800 is not a known field',
    'a.2 must be an object',
    `a.0.c ${unstorable}`,
    `a.1.b ${unstorable}`,
  ]);
  expect(errorsOf(text, 'x\0\0y')).toEqual(['a must have at most 3 characters']);
  expect(compileValidator({ schema: text, httpPart: 'body' })('four\0')).toMatchObject({
    error: { errors: [{ path: '' }] },
  });
});
