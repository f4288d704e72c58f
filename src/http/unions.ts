/**
 * Unions. The validator of the library reports the errors of all branches, although a client means one of them.
 *
 * Invariant: unions are of types that differ, of objects that differ in a constant field, or of strings. Those of paths and
 * queries, where types are converted, are of strings.
 */
import type Ajv from 'ajv';
import type { ErrorObject } from 'ajv';
import { oneOf, orList, show, typeNames } from '../errors/keyword-message.ts';
import { formats } from './formats.ts';
import { ruleOf } from './patterns.ts';

/** The schema of a branch; only what distinguishes branches. */
interface Branch {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  format?: string;
  pattern?: string;
  properties?: Record<string, Branch>;
}

type Validate = { errors?: Partial<ErrorObject>[] | null } & ((value: unknown, context?: never) => boolean);

/**
 * Replaces the keyword `anyOf` of the library. It reports the errors of the branch that the value is meant for, or one error
 * that describes the branches.
 */
export function distinguishBranches(ajv: Ajv.default): void {
  ajv.removeKeyword('anyOf');
  ajv.addKeyword({
    keyword: 'anyOf',
    schemaType: 'array',
    errors: 'full',
    compile(branches: Branch[]) {
      const validators = new Map(branches.map((branch) => [branch, validatorOf(ajv, branch)]));
      const validate: Validate = (value, context?: { instancePath: string }) => {
        const fitting = branches.filter((branch) => typesOf(branch).includes(typeOf(value)));
        const field = fitting.length > 1 && typeOf(value) === 'object' ? constantField(fitting) : undefined;
        const given = field === undefined ? undefined : (value as Record<string, unknown>)[field];
        const chosen = field === undefined ? fitting : fitting.filter((branch) => constantOf(branch, field) === given);
        if (chosen.some((branch) => validators.get(branch)!(value, context as never))) return true;
        if (chosen.length === 1) validate.errors = validators.get(chosen[0]!)!.errors ?? [];
        else if (field === undefined)
          validate.errors = [{ keyword: 'anyOf', params: {}, message: describeBranches(branches, fitting) }];
        else validate.errors = [constantError(fitting, field, given, context?.instancePath ?? '')];
        return false;
      };
      return validate as never;
    },
  });
}

/** Null is valid where its type is. */
function validatorOf(ajv: Ajv.default, branch: Branch): Validate {
  return branch.type === 'null' ? () => true : (ajv.compile(branch) as Validate);
}

/** The field that has another constant in each branch. */
function constantField(branches: Branch[]): string | undefined {
  const names = Object.keys(branches[0]?.properties ?? {});
  return names.find((name) => branches.every((branch) => constantOf(branch, name) !== undefined));
}

function constantOf(branch: Branch, field: string): unknown {
  return branch.properties?.[field]?.const;
}

function constantError(branches: Branch[], field: string, given: unknown, path: string): Partial<ErrorObject> {
  if (given === undefined) return { keyword: 'required', params: { missingProperty: field } };
  const allowedValues = branches.map((branch) => constantOf(branch, field));
  return { instancePath: `${path}/${field}`, keyword: 'enum', params: { allowedValues } };
}

function typesOf({ type, const: constant, enum: values = [constant] }: Branch): string[] {
  return type === undefined ? values.map(typeOf) : [type === 'integer' ? 'number' : type];
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/**
 * Describes the values that the branches of a union accept: `must be empty or a UUID`. The rule of a pattern is only
 * mentioned if a branch fits the type of the value: before `or null` it would be hard to read.
 */
function describeBranches(branches: Branch[], fitting: Branch[]): string {
  const described = branches.map((branch) => describeBranch(branch, fitting.length > 0));
  return `must be ${orList([...new Set(described)])}`;
}

function describeBranch(
  { const: constant, enum: values, format, pattern, type = '' }: Branch,
  withRule: boolean,
): string {
  if (constant !== undefined) return constant === '' ? 'empty' : show(constant);
  if (values) return oneOf(values);
  const rule = withRule ? ruleOf(pattern ?? '') : undefined;
  return formats[format ?? '']?.description ?? rule ?? typeNames[type] ?? 'valid';
}
