/**
 * Validates requests against their schemas and reports all errors at once, each with the path of its field.
 *
 * The types of body fields are not converted (a number as text is invalid). Paths and queries are text and are converted;
 * UUIDs in them get the lower case that rows have.
 */
import Ajv from 'ajv';
import type { TSchema } from 'typebox';
import { type FieldError, maxErrors } from '../errors/catalogue.ts';
import { typeNames } from '../errors/keyword-message.ts';
import { isStorable, storableText } from '../platform/storable-text.ts';
import { addRequestFormats } from './formats.ts';
import { boundItems, boundedPatterns } from './validation-bounds.ts';
import { distinguishBranches } from './unions.ts';
import { describe } from './validation-messages.ts';

export type Check = (data: unknown) => true | { error: ValidationError };

/** Unions whose branch is selected by the body, so that errors describe that branch only. */
const branchOf = new WeakMap<object, Branches>();
interface Branches {
  select(body: Record<string, unknown>): number;
  otherwise: TSchema[];
}

/**
 * Marks a union: `select` returns the index of the branch that validates a body. The index after the last branch is
 * `otherwise`, for a body that matches no branch: it rejects every body, with an error that describes all branches.
 */
export function selectBranch<T extends TSchema>(union: T, select: Branches['select'], ...otherwise: TSchema[]): T {
  branchOf.set(union, { select, otherwise });
  return union;
}

export class ValidationError extends Error {
  readonly errors: FieldError[];
  /** The part of the request. Set by Fastify for errors of a validator. */
  readonly validationContext?: string;
  constructor(errors: FieldError[], part?: string) {
    super('the request does not match its schema');
    this.errors = errors;
    if (part !== undefined) this.validationContext = part;
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
    // The meta-schema is recursive, which `boundItems` does not support. The type checker checks our schemas.
    meta: false,
    validateSchema: false,
    // Optimizing the generated code takes a third of the compilation, and V8 optimizes it anyway.
    code: { regExp: boundedPatterns, optimize: false },
  });
  boundItems(ajv);
  distinguishBranches(ajv);
  addRequestFormats(ajv);
  return ajv;
}

/**
 * Compiles the shape of one part of a request (`body`, `querystring`, `params`). The check sets defaults in the data and,
 * except in a body, converts text.
 */
export function compileValidator({ schema, httpPart }: { schema: unknown; httpPart?: string }): Check {
  const isBody = httpPart === 'body';
  const ajv = isBody ? strict : converting;
  const union = branchOf.get(schema as object);
  const schemas = union ? [...(schema as { anyOf: TSchema[] }).anyOf, ...union.otherwise] : [schema as TSchema];
  const branches = schemas.map((s) => ajv.compile(s));
  const parameters = isBody ? {} : (schema as ParametersSchema);
  const numbers = numbersOf(parameters);
  const uuids = uuidsOf(parameters);
  const booleans = booleansOf(parameters);
  const knownNames = httpPart === 'querystring' ? namesOf(parameters) : null;
  const single = httpPart === 'querystring' ? singleParametersOf(parameters) : [];
  const mayHaveText = isBody || hasText(parameters);
  return (data) => {
    const ofSpelling: FieldError[] = [];
    // Checked before the conversion.
    for (const path of single) {
      if (Array.isArray((data as Parameters)[path])) ofSpelling.push({ path, message: 'must be sent only once' });
    }
    for (const number of numbers) addMisspelt(ofSpelling, data as Parameters, number);
    for (const name of booleans) lowerCase(data as Parameters, name);
    const branch = union && isRecord(data) ? union.select(data) : 0;
    const validate = branches[branch]!;
    const found = validate(data) ? [] : describe(validate.errors ?? []);
    if (mayHaveText) found.push(...unstorable(data, found));
    const errors = [...ofSpelling, ...found.filter(({ path }) => !ofSpelling.some((error) => error.path === path))];
    if (knownNames) errors.push(...unknownParameters(data as object, knownNames));
    if (errors.length > 0) return { error: new ValidationError(errors.slice(0, maxErrors)) };
    for (const name of uuids) lowerCase(data as Parameters, name);
    return true;
  };
}

/** The parameters of a path or query. */
type Parameters = Record<string, unknown>;

/** The schema of a path or query, as far as the functions below read it. */
interface ParametersSchema {
  properties?: Record<string, { type?: string; format?: string; anyOf?: unknown; items?: { type?: string } }>;
  additionalProperties?: unknown;
}

const spellings = { integer: /^-?\d+$/, number: /^-?\d+(\.\d+)?$/ };

interface NumberParameter {
  name: string;
  type: keyof typeof spellings;
  isList: boolean;
}

function numbersOf({ properties = {} }: ParametersSchema): NumberParameter[] {
  return Object.entries(properties).flatMap(([name, { type: own, items }]) => {
    const type = items ? items.type : own;
    return type === 'integer' || type === 'number' ? [{ name, type, isList: items !== undefined }] : [];
  });
}

function uuidsOf({ properties = {} }: ParametersSchema): string[] {
  return Object.keys(properties).filter((name) => properties[name]!.format === 'uuid');
}

/** Python writes `True` and `False`. */
function booleansOf({ properties = {} }: ParametersSchema): string[] {
  return Object.keys(properties).filter((name) => properties[name]!.type === 'boolean');
}

/** Whether a parameter may have text that its type does not check. Numbers and UUIDs cannot. */
function hasText({ properties = {}, additionalProperties }: ParametersSchema): boolean {
  const isChecked = ({ type, format }: { type?: string; format?: string }) =>
    type === 'integer' || type === 'number' || type === 'boolean' || format === 'uuid';
  return Boolean(additionalProperties) || !Object.values(properties).every(isChecked);
}

function lowerCase(data: Parameters, name: string): void {
  const text = data[name];
  if (typeof text === 'string') data[name] = text.toLowerCase();
}

/** The names of query parameters; null if others are ignored. */
function namesOf({ properties = {}, additionalProperties }: ParametersSchema): Set<string> | null {
  return additionalProperties ? null : new Set(Object.keys(properties));
}

/** The names of query parameters that are not lists. */
function singleParametersOf({ properties = {} }: ParametersSchema): string[] {
  return Object.entries(properties).flatMap(([name, { type, anyOf }]) => (type === 'array' || anyOf ? [] : [name]));
}

function unknownParameters(query: object, known: Set<string>): FieldError[] {
  const unknown = Object.keys(query).filter((name) => !known.has(name));
  return unknown.map((path) => ({ path, message: 'is not a known query parameter' }));
}

/** The conversion would accept text that no client intends as a number: `0x1`, `1e0`, `+1`, a space or empty text. */
function addMisspelt(errors: FieldError[], data: Parameters, { name, type, isList }: NumberParameter): void {
  const texts = isList ? [data[name]].flat() : [data[name]];
  for (let i = 0; i < texts.length; i++) {
    if (!isMisspelt(texts[i], type)) continue;
    errors.push({ path: isList ? `${name}.${i}` : name, message: `must be ${typeNames[type]}` });
  }
}

function isMisspelt(text: unknown, type: NumberParameter['type']): boolean {
  return typeof text === 'string' && !spellings[type].test(text);
}

/**
 * Returns an error for each text that PostgreSQL cannot store, except in fields that have an error. The recursion is bounded,
 * because deeply nested bodies are not parsed (json-body.ts).
 */
function unstorable(data: unknown, known: FieldError[]): FieldError[] {
  const errors: FieldError[] = [];
  const knownPaths = new Set(known.map(({ path }) => path));
  const visit = (value: unknown, path: string): void => {
    if (typeof value === 'string') {
      if (!isStorable(value)) errors.push({ path, message: storableText });
    } else if (value !== null && typeof value === 'object') {
      for (const key of Object.keys(value)) {
        if (errors.length >= maxErrors) return;
        const field = path === '' ? key : `${path}.${key}`;
        if (knownPaths.has(field)) continue;
        if (!Array.isArray(value)) visit(key, path);
        visit((value as Record<string, unknown>)[key], field);
      }
    }
  };
  if (known.length < maxErrors && !knownPaths.has('')) visit(data, '');
  return errors;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
