/**
 * The generated description of the API's operations (src/main/client-table.ts writes it): what each command is called, what it
 * sends and what it returns. Reading it takes a millisecond; openapi.json takes ten times that.
 */
import generated from './operations.json' with { type: 'json' };

/** The part of JSON Schema that requests use. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  additionalProperties?: boolean | Schema;
  propertyNames?: Schema;
  pattern?: string;
  default?: unknown;
}

export interface Operation {
  id: string;
  /** The words of its command: `file-share access-rule create`. */
  command: string[];
  method: string;
  path: string;
  summary: string;
  description?: string;
  query?: Record<string, Schema & { required?: true }>;
  body?: Schema;
  /** Only if it is not `application/json`. */
  contentType?: string;
  /** The body may be omitted. */
  bodyOptional?: true;
  /** What a successful response contains. */
  result: 'list' | 'object' | 'text' | 'stream' | 'tasks' | 'none';
  /** Properties of the object, or of each object of the list. */
  fields?: string[];
  /** Superseded; not listed by the help. */
  hidden?: true;
}

export interface Table {
  operations: Operation[];
  /** Referenced by `#/schemas/NAME`. */
  schemas: Record<string, Schema>;
  /** The words of the patterns in the schemas, which continue "must be ". */
  rules: Record<string, string>;
  /** Path parameters, by name. */
  parameters: Record<string, Schema>;
  /** The operation that lists what an id names, by the name of the path parameter. */
  lists: Record<string, string>;
  /** The first word of each group, with the names of the resources in it. */
  groups: Record<string, string>;
  /** The operator's commands with the names of their options, for completion. */
  operatorCommands: Record<string, string[]>;
}

export const table = generated as Table;

export function operationById(id: string): Operation {
  const found = table.operations.find((operation) => operation.id === id);
  if (!found) throw new Error(`operation ${id} not found`);
  return found;
}

export function operationOf(command: string[]): Operation | undefined {
  const name = command.join(' ');
  return table.operations.find((operation) => operation.command.join(' ') === name);
}

/** The names of the parameters in a path: `/tasks/{task_id}` has `task_id`. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
}

/** The parameters of the path that come from options or the context, and not from operands. */
export function scopeNames(path: string): string[] {
  // A command about a project or region names it: the one of the context must not be deleted by an omission.
  const subject = /\/(?:projects|regions)\/\{(\w+)\}$/.exec(path)?.[1];
  return pathParameters(path).filter((name) => ['project_id', 'region_id'].includes(name) && name !== subject);
}

/** The parameters that the command takes as operands. */
export function operandNames(path: string): string[] {
  const scope = scopeNames(path);
  return pathParameters(path).filter((name) => !scope.includes(name));
}

/** Follows references. */
export function resolved(schema: Schema): Schema {
  let current = schema;
  while (current.$ref) {
    const { $ref, ...own } = current;
    current = { ...table.schemas[$ref.slice('#/schemas/'.length)], ...own };
  }
  return current;
}

/** The properties of an object, those of all variants together. `required` holds if every variant requires it. */
export function propertiesOf(schema: Schema): Map<string, { schema: Schema; required: boolean }> {
  const { properties = {}, required = [], anyOf = [] } = resolved(schema);
  const found = new Map(
    Object.entries(properties).map(([name, property]) => [
      name,
      { schema: property, required: required.includes(name) },
    ]),
  );
  const variants = anyOf.filter((variant) => resolved(variant).type !== 'null').map(propertiesOf);
  for (const variant of variants) {
    for (const [name, property] of variant) {
      const everywhere = variants.every((other) => other.get(name)?.required);
      const known = found.get(name);
      found.set(name, {
        schema: known ? withChoicesOf(known.schema, property.schema) : property.schema,
        required: everywhere,
      });
    }
  }
  return found;
}

/** Variants differ in the values that they allow for a field. */
function withChoicesOf(one: Schema, other: Schema): Schema {
  const choices = [choicesOf(one), choicesOf(other)];
  if (choices.some((each) => !each)) return one;
  const { const: _, description: __, ...kept } = one;
  return { ...kept, enum: [...new Set(choices.flat())] };
}

/** The only values that are allowed, if they are listed. */
export function choicesOf(schema: Schema): unknown[] | undefined {
  const value = valueSchema(schema);
  return value.const === undefined ? value.enum : [value.const];
}

/** The type of a value without `null`: variants that are null are ignored. */
export function valueSchema(schema: Schema): Schema {
  const whole = resolved(schema);
  const variants = (whole.anyOf ?? []).filter((variant) => resolved(variant).type !== 'null');
  if (variants.length !== 1) return whole;
  const { anyOf: _, ...own } = whole;
  return { ...valueSchema(variants[0]!), ...own };
}

export function typeOf(schema: Schema): string | undefined {
  const { type } = valueSchema(schema);
  return Array.isArray(type) ? type.find((name) => name !== 'null') : type;
}
