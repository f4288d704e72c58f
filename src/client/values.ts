/** Turns the text of options into values of the types that the API expects. */
import { usageError } from './errors.ts';
import { choicesOf, propertiesOf, resolved, type Schema, typeOf, valueSchema } from './table.ts';

/**
 * The value of an option that was given once or more: `--size 1`, `--tags team=web --tags env=test`,
 * `--access ip=10.0.0.1,mode=rw`, or JSON.
 */
export function optionValue(option: string, texts: string[], schema: Schema): unknown {
  const type = typeOf(schema);
  if (type === 'array') {
    if (texts.length === 1 && texts[0]!.startsWith('[')) return json(option, texts[0]!);
    const items = valueSchema(schema).items ?? {};
    return texts.map((text) => singleValue(option, text, items));
  }
  if (isObject(schema) && !texts.some((text) => text.startsWith('{') || text === 'null')) {
    return objectValue(option, texts.join(','), schema);
  }
  if (texts.length > 1) throw usageError(`${option} can be used only once`);
  return singleValue(option, texts[0]!, schema);
}

export function isObject(schema: Schema): boolean {
  const value = valueSchema(schema);
  return typeOf(schema) === 'object' || (value.anyOf ?? []).some(isObject);
}

function singleValue(option: string, text: string, schema: Schema): unknown {
  const value = valueSchema(schema);
  if (text === 'null' && isNullable(schema)) return null;
  if (isObject(schema)) return text.startsWith('{') ? json(option, text) : objectValue(option, text, schema);
  if (typeOf(schema) === 'array')
    return text.startsWith('[') ? json(option, text) : [singleValue(option, text, value.items ?? {})];
  return scalar(option, text, value);
}

function scalar(option: string, text: string, schema: Schema): unknown {
  const choices = choicesOf(schema);
  if (choices) {
    const found = choices.find((choice) => String(choice) === text);
    // The server may know more than this client, so it decides.
    return found ?? text;
  }
  switch (typeOf(schema)) {
    case 'integer':
      if (!/^[-+]?\d+$/.test(text)) throw usageError(`${option} must be a whole number, not ${JSON.stringify(text)}`);
      return Number(text);
    case 'number':
      if (text.trim() === '' || !Number.isFinite(Number(text))) {
        throw usageError(`${option} must be a number, not ${JSON.stringify(text)}`);
      }
      return Number(text);
    case 'boolean':
      if (text !== 'true' && text !== 'false')
        throw usageError(`${option} must be true or false, not ${JSON.stringify(text)}`);
      return text === 'true';
    case 'string':
      return text;
    default:
      return variant(option, text, schema);
  }
}

/** A value of several types, such as a number or `default`. */
function variant(option: string, text: string, { anyOf = [] }: Schema): unknown {
  const types = anyOf.map((each) => typeOf(each));
  if (types.includes('integer') && /^-?\d+$/.test(text)) return Number(text);
  if (types.includes('boolean') && /^(true|false)$/.test(text)) return text === 'true';
  if (anyOf.length === 0 && /^[[{]/.test(text)) return json(option, text);
  return text;
}

function isNullable(schema: Schema): boolean {
  const whole = resolved(schema);
  const { type } = whole;
  return type === 'null' || (Array.isArray(type) && type.includes('null')) || (whole.anyOf ?? []).some(isNullable);
}

/** `key=value,key=value`; a key may be a unique part of the property's name, or a path such as `network.id`. */
function objectValue(option: string, text: string, schema: Schema): Record<string, unknown> {
  const properties = propertiesOf(valueSchema(schema));
  const result: Record<string, unknown> = {};
  for (const [key, value] of pairs(option, text)) {
    // Keys of maps, such as tags, are free.
    if (properties.size === 0) {
      result[key] = value === 'null' ? null : value;
      continue;
    }
    const [first = '', ...rest] = key.split('.');
    const name = propertyNamed(option, first, [...properties.keys()]);
    const property = properties.get(name)!.schema;
    const inner = rest.length === 0 ? value : `${rest.join('.')}=${/^[[{]/.test(value) ? value : quoted(value)}`;
    const parsed = singleValue(`${option} ${name}`, inner, property);
    const before = result[name];
    if (Array.isArray(before) && Array.isArray(parsed)) result[name] = joined(before, parsed as unknown[], rest[0]);
    else if (rest.length > 0 && before) result[name] = { ...(before as object), ...(parsed as object) };
    else result[name] = parsed;
  }
  return result;
}

/** `pools.name=a,pools.protocol=HTTP` is one item; a key that the last item has starts another one. */
function joined(before: unknown[], added: unknown[], key: string | undefined): unknown[] {
  const last = before.at(-1);
  if (key === undefined || typeof last !== 'object' || last === null) return [...before, ...added];
  const names = Object.keys(added[0] as object);
  if (names.some((name) => name in last)) return [...before, ...added];
  return [...before.slice(0, -1), { ...last, ...(added[0] as object) }];
}

function quoted(text: string): string {
  return /[,"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function propertyNamed(option: string, key: string, names: string[]): string {
  if (names.includes(key)) return key;
  const candidates = names.filter((name) => name.startsWith(`${key}_`) || name.endsWith(`_${key}`));
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length > 1) throw usageError(`${option}: ${key} can mean ${candidates.join(' or ')}`);
  throw usageError(`${option}: unknown key ${JSON.stringify(key)}; known: ${names.join(', ')}`);
}

/** Splits at commas. A value in double quotes may contain commas, "" is a double quote in it; JSON is taken as a whole. */
export function pairs(option: string, text: string): [key: string, value: string][] {
  const found: [string, string][] = [];
  const pattern = /\s*([^=,"]+)=(?:"((?:[^"]|"")*)"(?=,|$)|([^,[{"][^,]*|))/y;
  for (let at = 0; at < text.length; at++) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    const end = match ? pattern.lastIndex : -1;
    const isJson = match?.[3] === '' && /[[{]/.test(text[end] ?? '');
    const value = isJson ? jsonAt(text, end) : (match?.[2]?.replaceAll('""', '"') ?? match?.[3]);
    if (!match || value === undefined) throw notPairs(option, text.slice(at));
    at = isJson ? end + value.length : end;
    if (at < text.length && text[at] !== ',') throw notPairs(option, text.slice(at));
    found.push([match[1]!.trim(), value]);
  }
  if (found.length === 0) throw usageError(`${option} must not be empty`);
  return found;
}

function notPairs(option: string, rest: string): Error {
  return usageError(`${option} must be key=value pairs separated by commas, or JSON, not ${JSON.stringify(rest)}`);
}

/** The object or array that starts here; undefined if it does not end. */
function jsonAt(text: string, start: number): string | undefined {
  let depth = 0;
  for (const token of text.slice(start).matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (/^[[{]$/.test(token[0])) depth++;
    if (/^[\]}]$/.test(token[0]) && --depth === 0) return text.slice(start, start + token.index + 1);
  }
  return undefined;
}

function json(option: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${option} is not valid JSON: ${(error as Error).message}`, error);
  }
}
