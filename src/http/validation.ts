/**
 * Checks requests against their schemas: everything that is wrong at once, in words that name the field.
 *
 * Bodies are taken as they are (a number as text is wrong); paths and queries are text by nature and are converted.
 */
import Ajv from 'ajv';
import type { ErrorObject, ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import type { FieldError } from '../errors/catalogue.ts';
import { canonicalNetwork, isAddress } from '../platform/network-address.ts';
import { isStorable, storableText } from '../platform/storable-text.ts';

type Check = (data: unknown) => true | { error: ValidationError };

/** Unions whose branch is known from the body, so that errors speak of that branch only. */
const branchOf = new WeakMap<object, Branches>();
interface Branches {
  select(body: Record<string, unknown>): number;
  otherwise: TSchema[];
}

/**
 * Marks a union: `select` says by which of its branches a body is checked. One past the last is `otherwise`, for a body
 * of no branch: it lets nothing in, and names the field in words that speak of all branches.
 */
export function selectBranch<T extends TSchema>(union: T, select: Branches['select'], ...otherwise: TSchema[]): T {
  branchOf.set(union, { select, otherwise });
  return union;
}

export class ValidationError extends Error {
  readonly errors: FieldError[];
  constructor(errors: FieldError[]) {
    super('the request does not match its schema');
    this.errors = errors;
  }
}

const strict = createAjv(false);
const converting = createAjv('array');

function createAjv(coerceTypes: boolean | 'array') {
  const ajv = new Ajv.default({
    allErrors: true,
    useDefaults: true,
    removeAdditional: false,
    coerceTypes,
    strict: false,
  });
  addFormats.default(ajv);
  // The package's own takes `urn:uuid:…` too, which PostgreSQL does not.
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i);
  ajv.addFormat('ip-address', isAddress);
  ajv.addFormat('ip-network', (text: string) => canonicalNetwork(text) !== null);
  return ajv;
}

export function compileValidator({ schema, httpPart }: { schema: unknown; httpPart?: string }): Check {
  const ajv = httpPart === 'body' ? strict : converting;
  const union = branchOf.get(schema as object);
  const schemas = union ? [...(schema as { anyOf: TSchema[] }).anyOf, ...union.otherwise] : [schema as TSchema];
  const branches = schemas.map((s) => ajv.compile(s));
  const numbers = httpPart === 'body' ? [] : numbersOf(schema as TSchema);
  return (data) => {
    // Before they are converted.
    const misspelt = numbers.filter(({ name, type }) => isMisspelt((data as Record<string, unknown>)[name], type));
    const branch = union && isRecord(data) ? union.select(data) : 0;
    const validate = branches[branch]!;
    // What its schema knows is not deeply nested, so only that is walked through.
    const errors = validate(data) ? unstorable(data, []) : describe(validate);
    for (const { name: path, type } of misspelt) {
      if (!errors.some((error) => error.path === path)) errors.push({ path, message: `must be ${type}` });
    }
    return errors.length === 0 || { error: new ValidationError(errors.slice(0, maxReported)) };
  };
}

const spellings = { integer: /^-?\d+$/, number: /^-?\d+(\.\d+)?$/ };

function numbersOf(schema: TSchema): { name: string; type: keyof typeof spellings }[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  return Object.entries(properties).flatMap(([name, { type }]) =>
    type === 'integer' || type === 'number' ? [{ name, type }] : [],
  );
}

/** What the conversion would take for a number, and no client means as one: 0x1, 1e0, +1, nothing. */
function isMisspelt(text: unknown, type: keyof typeof spellings): boolean {
  return typeof text === 'string' && !spellings[type].test(text);
}

/** Names every text that PostgreSQL cannot hold. */
function unstorable(data: unknown, path: string[]): FieldError[] {
  if (typeof data === 'string') {
    return isStorable(data) ? [] : [{ path: path.join('.'), message: storableText }];
  }
  if (data === null || typeof data !== 'object') return [];
  return Object.entries(data).flatMap(([key, value]) => [
    ...(Array.isArray(data) ? [] : unstorable(key, path)),
    ...unstorable(value, [...path, key]),
  ]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

const maxReported = 100;

function describe(validate: ValidateFunction): FieldError[] {
  const seen = new Set<string>();
  const errors = validate.errors ?? [];
  const isOnlyNull = (e: ErrorObject) =>
    e.params.type === 'null' && errors.some((other) => other !== e && other.instancePath === e.instancePath);
  const described = errors
    // A union reports each branch and then itself; a property name reports itself and then its map.
    .filter((e) => e.keyword !== 'anyOf' && e.keyword !== 'if' && e.keyword !== 'propertyNames')
    // Of what may be null, say what it may be otherwise.
    .filter((e) => !isOnlyNull(e))
    .map(fieldError)
    .filter((e) => !seen.has(`${e.path} ${e.message}`) && seen.add(`${e.path} ${e.message}`));
  return described;
}

function fieldError(error: ErrorObject): FieldError {
  const base = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const at = (name?: string) => [...base, ...(name === undefined ? [] : [name])].join('.');
  switch (error.keyword) {
    case 'required':
      return { path: at(error.params.missingProperty), message: 'is required' };
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return { path: at(error.params.additionalProperty), message: 'is not a known field' };
    case 'enum':
      return { path: at(), message: `must be one of ${error.params.allowedValues.map(show).join(', ')}` };
    case 'const':
      return { path: at(), message: `must be ${show(error.params.allowedValue)}` };
    case 'format':
      return { path: at(), message: `must be ${formats[error.params.format] ?? error.params.format}` };
    default:
      return { path: at(error.propertyName), message: error.message ?? 'is invalid' };
  }
}

const formats: Record<string, string> = {
  uuid: 'a UUID',
  'date-time': 'a date and time such as 2026-11-20T09:52:52Z',
  'iso-date-time': 'a date and time such as 2026-11-20T09:52:52Z',
  email: 'an e-mail address such as name@example.com',
  uri: 'a URL such as https://example.com/hook',
  'ip-address': 'an IPv4 or IPv6 address',
  'ip-network': 'an IPv4 or IPv6 address, or a network such as 10.0.0.0/24 without host bits',
};

function show(value: unknown): string {
  return JSON.stringify(value);
}
