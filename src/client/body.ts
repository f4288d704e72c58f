/** The body of a request: `--body` first, then the options of its fields. */
import { usageError } from './errors.ts';
import { type Io, readText } from './io.ts';
import { isObject, optionValue } from './values.ts';
import { choicesOf, type Operation, propertiesOf, resolved } from './table.ts';

/** `@FILE`, `-` for standard input, or the text itself. */
export async function textOf(option: string, given: string, io: Io): Promise<string> {
  return given === '-' || given.startsWith('@') ? readText(given.replace('@', ''), io, `${option}: `) : given;
}

/** Files may be YAML, which includes JSON. */
export async function parsedBody(text: string): Promise<unknown> {
  const value = await parsed(text);
  if (typeof value === 'object' && value !== null) return value;
  throw usageError('--body must be an object or an array in JSON or YAML');
}

async function parsed(text: string): Promise<unknown> {
  try {
    return JSON.parse(text);
  } catch {
    const { parse } = await import('yaml');
    try {
      return parse(text) as unknown;
    } catch (error) {
      throw usageError(`--body is neither JSON nor YAML: ${(error as Error).message.split('\n')[0]}`, error);
    }
  }
}

/** `texts` are the options of the fields. @throws CommandError that names all required fields that are missing */
export async function bodyOf(
  operation: Operation,
  given: string | undefined,
  texts: Record<string, string[]>,
  io: Io,
): Promise<unknown> {
  if (!operation.body) return undefined;
  const base = given === undefined ? undefined : await parsedBody(await textOf('--body', given, io));
  const fields = propertiesOf(operation.body);
  const own = Object.fromEntries(
    Object.entries(texts).map(([name, values]) => [
      name,
      optionValue(optionOf(name), values, fields.get(name)!.schema),
    ]),
  );
  if (base === undefined && Object.keys(own).length === 0) {
    if (operation.bodyOptional) return undefined;
    if (fields.size === 0) throw usageError('--body is required');
  }
  if (Array.isArray(base)) {
    if (Object.keys(own).length > 0) throw usageError('--body is an array, so no other option can add to it');
    return base;
  }
  const body: Record<string, unknown> = { ...(base as object | undefined), ...own };
  for (const [name, { schema, required }] of fields) {
    const choices = required && !Object.hasOwn(body, name) ? choicesOf(schema) : undefined;
    if (choices?.length === 1) [body[name]] = choices;
  }
  const missing = [...fields].filter(([name, { required }]) => required && !Object.hasOwn(body, name));
  if (missing.length > 0) throw usageError(`required: ${missing.map(([name]) => optionOf(name)).join(', ')}`);
  return body;
}

/** Options of the client. A field of the same name gets a prefix: `--field-timeout`, `--query-wait`. */
const reserved = new Set([
  ...['output', 'columns', 'quiet', 'context', 'project', 'region', 'wait', 'timeout', 'body', 'help'],
]);

/** The option of a field of the body, or of a parameter of the query. */
export function optionOf(name: string, source: 'field' | 'query' = 'field'): string {
  return `--${reserved.has(name) ? `${source}-` : ''}${name.replaceAll('_', '-')}`;
}

/** Bodies that are a map, such as tags, have no field of their own: `--body` only. */
export function hasFields(operation: Operation): boolean {
  return operation.body !== undefined && isObject(operation.body) && propertiesOf(resolved(operation.body)).size > 0;
}
