/** Writes data to standard output: tables for people, JSON and YAML for programs. */
import { usageError } from './errors.ts';

export const formats = ['table', 'wide', 'json', 'yaml'] as const;
type Format = (typeof formats)[number];

export interface OutputOptions {
  output?: string;
  columns?: string;
  quiet?: boolean;
}

/** The columns of a table, in this order, if the resource has them. */
const usual = [
  ...['id', 'name', 'display_name', 'key', 'value', 'task_type', 'state', 'status', 'provisioning_status'],
  ...['operating_status', 'role', 'protocol', 'protocol_port', 'address', 'ip_address', 'access_mode', 'action'],
  ...['access_level', 'access_to', 'type', 'size', 'storage_limit', 'operation', 'cidr', 'connection_point'],
  ...['vip_address', 'url', 'error', 'created_at'],
];
const mostUsual = 7;
/** Resources without them show their first properties. */
const fewest = 4;

export function formatOf({ output }: OutputOptions): Format {
  const format = (output ?? 'table') as Format;
  if (!formats.includes(format)) throw usageError(`--output must be one of: ${formats.join(', ')}`);
  return format;
}

/** The text of a result, which ends with a line break unless it is empty. `fields` are the properties that it can have. */
export async function formatted(data: unknown, fields: string[], options: OutputOptions): Promise<string> {
  const format = formatOf(options);
  const columns = columnsGiven(options);
  requireColumns(options, [...fields, ...rowsOf(data).flatMap((row) => Object.keys(row))]);
  if (options.quiet) {
    const values = (row: unknown) => columns?.map((name) => plainCell(valueAt(row, name))).join('\t');
    return lines(rowsOf(data).flatMap((row) => values(row) ?? identity(row)));
  }
  if (format === 'json') return jsonText(columns ? selected(data, columns) : data);
  if (format === 'yaml') return yamlText(columns ? selected(data, columns) : data);
  if (!Array.isArray(data)) return propertyTable(data, columns);
  return listTable(data, columns ?? columnsOf(data, fields, format === 'wide'));
}

// eslint-disable-next-line no-control-regex
const unescapedControls = /[\u007f-\u009f]/g;

/** JSON escapes the other control characters only. These control a terminal too, and other clients choose some texts. */
export function escapeControls(quoted: string): string {
  return quoted.replaceAll(unescapedControls, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
}

/** Indented JSON without characters that control a terminal. */
export function jsonText(data: unknown): string {
  return `${escapeControls(JSON.stringify(data, null, 2))}\n`;
}

/** As `jsonText`: texts with such characters are quoted, because YAML has escapes in quotes only. */
async function yamlText(data: unknown): Promise<string> {
  const { Document, visit } = await import('yaml');
  const document = new Document(data);
  visit(document, {
    Scalar(_key, scalar) {
      if (typeof scalar.value === 'string' && scalar.value.search(unescapedControls) >= 0) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return escapeControls(document.toString({ lineWidth: 0 }));
}

function lines(values: string[]): string {
  return values.map((value) => `${value}\n`).join('');
}

/** The text as it is, and a line break at its end unless it is empty. */
export function withLineBreak(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function rowsOf(data: unknown): Record<string, unknown>[] {
  return (Array.isArray(data) ? data : [data]).filter((row) => row !== null && row !== undefined) as never[];
}

/** The id, or else the name, which other commands accept. None of an empty object, such as limits that nothing exceeds. */
function identity(row: Record<string, unknown>): string[] {
  if (typeof row !== 'object') return [String(row)];
  const [first] = Object.values(row);
  return first === undefined ? [] : [cell(row['id'] ?? row['name'] ?? row['key'] ?? first)];
}

function columnsGiven({ columns }: OutputOptions): string[] | undefined {
  return columns?.split(',').map((name) => name.trim());
}

/** @throws CommandError for columns that are not among the fields, if these are known */
export function requireColumns(options: OutputOptions, fields: string[]): void {
  const known = new Set(fields);
  const unknown = (columnsGiven(options) ?? []).filter((name) => !known.has(name.split('.')[0]!));
  if (known.size > 0 && unknown.length > 0) {
    throw usageError(`unknown column ${unknown.join(', ')}; known: ${[...known].join(', ')}`);
  }
}

function selected(data: unknown, columns: string[]): unknown {
  const pick = (row: unknown) => Object.fromEntries(columns.map((name) => [name, valueAt(row, name) ?? null]));
  return Array.isArray(data) ? data.map(pick) : pick(data);
}

/** The value at a path, whose keys are separated by dots; undefined if there is none. */
export function valueAt(row: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], row);
}

function columnsOf(rows: unknown[], fields: string[], wide: boolean): string[] {
  const known = fields.length > 0 ? fields : [...new Set(rows.flatMap((row) => Object.keys(row as object)))];
  const frequent = usual.filter((name) => known.includes(name)).slice(0, mostUsual);
  const others = known.filter((name) => !frequent.includes(name));
  if (wide) return [...frequent, ...others];
  return frequent.length >= fewest ? frequent : [...frequent, ...others].slice(0, fewest);
}

/** Empty for an empty list: standard output has nothing but data. */
function listTable(rows: unknown[], columns: string[]): string {
  if (rows.length === 0) return '';
  const cells = rows.map((row) => columns.map((name) => cell(valueAt(row, name))));
  return lines(aligned([columns.map((name) => name.toUpperCase()), ...cells]));
}

function propertyTable(data: unknown, columns: string[] | undefined): string {
  if (data === null || data === undefined) return '';
  if (typeof data !== 'object') return `${cell(data)}\n`;
  const names = columns ?? Object.keys(data);
  return lines(aligned(names.map((name) => [name, cell(valueAt(data, name))])));
}

/** A line for each row, with its cells in columns. */
export function aligned(rows: string[][]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, text] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, text.length);
  return rows.map((row) =>
    row
      .map((text, i) => text.padEnd(widths[i]!))
      .join('  ')
      .trimEnd(),
  );
}

/** For scripts: empty values are empty. */
function plainCell(value: unknown): string {
  const isEmpty = value === null || value === undefined || (Array.isArray(value) && value.length === 0);
  return isEmpty || value === '' ? '' : cell(value);
}

function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  return oneLine(typeof value === 'object' ? compact(value) : String(value));
}

/** One line, without characters that control a terminal. */
export function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}

/** Lists of scalars, and of resources by name or id, are shorter than their JSON. */
function compact(value: object): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  if (value.length === 0) return '-';
  const parts = value.map((item: unknown) => {
    if (typeof item !== 'object' || item === null) return String(item);
    const { key, value: own, name, id } = item as Record<string, unknown>;
    if (key !== undefined && own !== undefined) return `${key}=${own}`;
    return name ?? id;
  });
  return parts.every((part) => typeof part === 'string' || typeof part === 'number')
    ? parts.join(',')
    : JSON.stringify(value);
}
