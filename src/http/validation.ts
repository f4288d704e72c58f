/**
 * Checks requests against their schemas: everything that is wrong at once, in words that name the field.
 *
 * Bodies are taken as they are (a number as text is wrong); paths and queries are text by nature and are converted.
 */
import Ajv from 'ajv';
import type { ErrorObject } from 'ajv';
import type { TSchema } from 'typebox';
import { maxErrors } from '../errors/catalogue.ts';
import type { FieldError } from '../errors/catalogue.ts';
import { isStorable, storableText } from '../platform/storable-text.ts';
import { addRequestFormats, formats } from './formats.ts';
import { boundItems, boundedPatterns, maxExamined } from './validation-bounds.ts';

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
    // The library's schema of schemas refers to itself, which `boundItems` does not support; the type checker checks ours.
    meta: false,
    validateSchema: false,
    code: { regExp: boundedPatterns },
  });
  boundItems(ajv);
  addRequestFormats(ajv);
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
    const errors = validate(data) ? unstorable(data) : describe(validate.errors ?? []);
    for (const { name: path, type } of misspelt) {
      if (!errors.some((error) => error.path === path)) errors.push({ path, message: `must be ${type}` });
    }
    return errors.length === 0 || { error: new ValidationError(errors.slice(0, maxErrors)) };
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

/** Names text that PostgreSQL cannot hold. */
function unstorable(data: unknown): FieldError[] {
  const errors: FieldError[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value === 'string') {
      if (!isStorable(value)) errors.push({ path, message: storableText });
    } else if (value !== null && typeof value === 'object') {
      for (const key of Object.keys(value)) {
        if (errors.length >= maxErrors) return;
        if (!Array.isArray(value)) visit(key, path);
        visit((value as Record<string, unknown>)[key], path === '' ? key : `${path}.${key}`);
      }
    }
  };
  visit(data, '');
  return errors;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** In one pass over the errors, whose number grows with the body. */
function describe(found: ErrorObject[]): FieldError[] {
  const examined = found.slice(0, maxExamined);
  const counts = new Map<string, number>();
  const tooLong = new Set<string>();
  for (const { instancePath, keyword } of examined) {
    counts.set(instancePath, (counts.get(instancePath) ?? 0) + 1);
    if (keyword === 'maxLength') tooLong.add(instancePath);
  }
  const described = new Map<string, FieldError>();
  for (const error of examined) {
    if (described.size === maxErrors) break;
    // A union reports each branch and then itself; a property name reports itself and then its map.
    if (['anyOf', 'if', 'propertyNames'].includes(error.keyword)) continue;
    // Of what may be null, say what it may be otherwise.
    if (error.params.type === 'null' && counts.get(error.instancePath)! > 1) continue;
    // Text that is too long matches nothing.
    if ((error.keyword === 'pattern' || error.keyword === 'format') && tooLong.has(error.instancePath)) continue;
    const field = fieldError(error);
    const key = `${field.path} ${field.message}`;
    if (!described.has(key)) described.set(key, field);
  }
  return [...described.values()];
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
      return { path: at(), message: `must be ${formats[error.params.format]?.description ?? error.params.format}` };
    default:
      return { path: at(error.propertyName), message: error.message ?? 'is invalid' };
  }
}

function show(value: unknown): string {
  return JSON.stringify(value);
}
