/** The keywords of JSON Schema that openapi.json uses, without references. */
export interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly description?: string;
  readonly deprecated?: boolean;
}

export interface Problem {
  readonly path: string;
  readonly message: string;
}

/** Every violation of `schema` by `value`, with the paths that the server uses: `access.0.ip_address`. */
export function validate(schema: JsonSchema, value: unknown, path = ''): Problem[] {
  if (schema.anyOf) return validateAnyOf(schema.anyOf, value, path);
  if (schema.enum)
    return schema.enum.includes(value) ? [] : [{ path, message: `must be one of: ${schema.enum.join(', ')}` }];
  if (schema.type && !isOfType(schema.type, value)) return [{ path, message: `must be ${typeName(schema.type)}` }];
  if (typeof value === 'number') return validateNumber(schema, value, path);
  if (typeof value === 'string') return validateText(schema, value, path);
  if (Array.isArray(value)) return validateArray(schema, value, path);
  if (typeof value === 'object' && value !== null)
    return validateObject(schema, value as Record<string, unknown>, path);
  return [];
}

/** A value of a union belongs to the alternative with the fewest problems; null has one with any other value. */
function validateAnyOf(alternatives: readonly JsonSchema[], value: unknown, path: string): Problem[] {
  const possible = alternatives.filter(({ type }) => value === null || type !== 'null');
  const results = possible.map((alternative) => validate(alternative, value, path));
  return results.toSorted((a, b) => a.length - b.length)[0] ?? [];
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return typeof value === 'number' && Number.isFinite(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'null') return value === null;
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function typeName(type: string): string {
  if (type === 'integer') return 'a whole number';
  if (type === 'string') return 'text';
  return type === 'number' ? 'a number' : type;
}

function validateNumber(schema: JsonSchema, value: number, path: string): Problem[] {
  const { minimum, maximum, exclusiveMinimum, multipleOf } = schema;
  const problem = (message: string) => [{ path, message }];
  if (minimum !== undefined && value < minimum) return problem(`must be at least ${minimum}`);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    return problem(`must be greater than ${exclusiveMinimum}`);
  if (maximum !== undefined && value > maximum) return problem(`must be at most ${maximum}`);
  if (multipleOf !== undefined && value % multipleOf !== 0) return problem(`must be a multiple of ${multipleOf}`);
  return [];
}

const FORMATS: Readonly<Record<string, { readonly test: RegExp; readonly name: string }>> = {
  uuid: { test: /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i, name: 'a UUID' },
  'ip-network': {
    test: /^([\d.]+|[\da-f:.]*:[\da-f:.]*)(\/\d{1,3})?$/i,
    name: 'an IP address or network, such as 10.0.0.0/24',
  },
  'ip-cidr': {
    test: /^([\d.]+|[\da-f:.]*:[\da-f:.]*)\/\d{1,3}$/i,
    name: 'an IP network, such as 10.0.0.0/24',
  },
};

function validateText(schema: JsonSchema, value: string, path: string): Problem[] {
  const { minLength = 0, maxLength, pattern, format } = schema;
  // The API counts characters, not UTF-16 units.
  const length = [...value].length;
  const problem = (message: string) => [{ path, message }];
  if (length < minLength)
    return problem(minLength === 1 ? 'is required' : `must have at least ${minLength} characters`);
  if (maxLength !== undefined && length > maxLength) return problem(`must have at most ${maxLength} characters`);
  // Without a description, only the server has words for the pattern.
  if (pattern !== undefined && schema.description && !new RegExp(pattern, 'u').test(value)) {
    return problem(plain(schema.description));
  }
  const known = format === undefined ? undefined : FORMATS[format];
  return known && !known.test.test(value) ? problem(`must be ${known.name}`) : [];
}

function validateArray(schema: JsonSchema, value: readonly unknown[], path: string): Problem[] {
  const { items, minItems = 0, maxItems = Infinity } = schema;
  if (value.length < minItems) return [{ path, message: `must have at least ${minItems} items` }];
  if (value.length > maxItems) return [{ path, message: `must have at most ${maxItems} items` }];
  return items ? value.flatMap((item, index) => validate(items, item, join(path, index))) : [];
}

function validateObject(schema: JsonSchema, value: Record<string, unknown>, path: string): Problem[] {
  const {
    properties = {},
    required = [],
    additionalProperties: rest,
    propertyNames,
    maxProperties = Infinity,
  } = schema;
  const missing = required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ path: join(path, name), message: 'is required' }));
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  const tooMany =
    entries.length > maxProperties ? [{ path, message: `must have at most ${maxProperties} entries` }] : [];
  const inside = entries.flatMap(([name, each]): Problem[] => {
    const at = join(path, name);
    const known = properties[name];
    if (known) return validate(known, each, at);
    if (propertyNames) {
      const [problem] = validate(propertyNames, name, at);
      if (problem) return [problem];
    }
    if (rest === false) return [{ path: at, message: 'is not a field of this operation' }];
    return typeof rest === 'object' ? validate(rest, each, at) : [];
  });
  return [...missing, ...tooMany, ...inside];
}

function join(path: string, name: string | number): string {
  return path === '' ? String(name) : `${path}.${name}`;
}

/** The schema of the field at `path`; within a union, that of the first alternative that has the field. */
export function schemaAt(schema: JsonSchema, path: string): JsonSchema | undefined {
  if (path === '') return schema;
  const [first = '', ...others] = path.split('.');
  const rest = others.join('.');
  for (const alternative of schema.anyOf ?? [schema]) {
    const inner = alternative.properties?.[first] ?? (/^\d+$/.test(first) ? alternative.items : undefined);
    const found = inner && schemaAt(inner, rest);
    if (found) return withoutNull(found);
  }
  return undefined;
}

/** `T or null` is edited as a T. */
function withoutNull(schema: JsonSchema): JsonSchema {
  const alternatives = schema.anyOf?.filter(({ type }) => type !== 'null');
  if (alternatives?.length !== 1) return schema;
  const { anyOf: _anyOf, ...rest } = schema;
  return { ...alternatives[0], ...rest };
}

/** Descriptions of the API are Markdown with inline code only. */
export function plain(text: string): string {
  return text.replaceAll('`', '');
}

/** Whether the field at `path` must be sent. */
export function isRequired(schema: JsonSchema, path: string): boolean {
  const [parent, name] = parentOf(schema, path);
  return parent?.required?.includes(name) ?? false;
}

/** Whether null is a value of the field at `path`. */
export function isNullable(schema: JsonSchema, path: string): boolean {
  const [parent, name] = parentOf(schema, path);
  return parent?.properties?.[name]?.anyOf?.some(({ type }) => type === 'null') ?? false;
}

function parentOf(schema: JsonSchema, path: string): [JsonSchema | undefined, string] {
  const cut = path.lastIndexOf('.');
  return [cut < 0 ? schema : schemaAt(schema, path.slice(0, cut)), path.slice(cut + 1)];
}
