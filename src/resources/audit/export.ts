/** Entries of the audit log as text for other programs: CSV (RFC 4180) or JSON lines. Read and written in groups. */
import { yieldToEventLoop } from '../../platform/event-loop.ts';
import type { Groups } from '../../platform/large-rows.ts';
import type { AuditEntry, ExportFormat } from './schema.ts';

export const mediaTypes: Record<ExportFormat, string> = {
  csv: 'text/csv; charset=utf-8; header=present',
  jsonl: 'application/x-ndjson; charset=utf-8',
};

/** Media types by which clients ask for a format. */
const acceptedTypes: Record<string, ExportFormat> = {
  'text/csv': 'csv',
  'application/jsonl': 'jsonl',
  'application/x-ndjson': 'jsonl',
};

/** The first format that an Accept header names; undefined: JSON. */
export function formatOf(accept: string | undefined): ExportFormat | undefined {
  const types = (accept ?? '').split(',').map((part) => part.split(';')[0]!.trim().toLowerCase());
  for (const type of types) {
    if (type === 'application/json' || type === '*/*') return undefined;
    if (acceptedTypes[type]) return acceptedTypes[type];
  }
  return undefined;
}

const columns: [name: string, value: (entry: AuditEntry) => unknown][] = [
  ['id', ({ id }) => id],
  ['at', ({ at }) => at],
  ['operation', ({ operation }) => operation],
  ['token_id', ({ token }) => token?.id],
  ['token_name', ({ token }) => token?.name],
  ['client_id', ({ client_id }) => client_id],
  ['project_id', ({ project_id }) => project_id],
  ['region_id', ({ region_id }) => region_id],
  ['request_id', ({ request_id }) => request_id],
  ...['address', 'method', 'path', 'user_agent', 'forwarded_for', 'host', 'account'].map(
    (name): (typeof columns)[number] => [name, ({ origin }) => origin[name]],
  ),
  ['changes', ({ changes }) => JSON.stringify(changes)],
];

/** The text of an export, group by group. */
export async function* exportText(format: ExportFormat, groups: Groups<AuditEntry>): AsyncGenerator<string> {
  if (format === 'csv') yield rowOf(columns.map(([name]) => name));
  for await (const group of groups) {
    await yieldToEventLoop();
    if (group.length > 0) yield group.map(format === 'csv' ? csvRow : jsonLine).join('');
  }
}

const jsonLine = (entry: AuditEntry) => `${JSON.stringify(entry)}\n`;
const csvRow = (entry: AuditEntry) => rowOf(columns.map(([, value]) => value(entry)));
const rowOf = (cells: unknown[]) => `${cells.map(cellOf).join(',')}\r\n`;

/** Text that a spreadsheet interprets as a formula, with the wide forms of the signs. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;

/** Clients choose names and user agents, and a spreadsheet would run `=HYPERLINK(…)`: an apostrophe makes it text. */
function cellOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = String(value);
  const safe = formula.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
