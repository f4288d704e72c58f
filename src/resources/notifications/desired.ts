/** Pure: rows to what is sent, and when it is tried again. */
import { withZone } from '../../platform/clock.ts';
import type { MessageBody } from './schema.ts';
import type { NotificationRow } from './store.ts';

const firstWaitMs = 5000;
const longestWaitMs = 3_600_000;
/** A message that nobody took for so long is given up. */
export const givenUpAfterMs = 24 * 3_600_000;

/** How long to wait after so many failures: 5, 10, 20 s … and then every hour. */
export function waitMs(failures: number): number {
  return Math.min(firstWaitMs * 2 ** (failures - 1), longestWaitMs);
}

/** The body of a webhook's call; the same text at each attempt. */
export function webhookBody({ id, type, clientId, createdAt, subject, data }: NotificationRow): string {
  return JSON.stringify({ id, type, client_id: clientId, created_at: withZone(createdAt), subject, data });
}

/** The two parts of an e-mail, which say the same. */
export function emailParts({ body, id }: NotificationRow): { text: string; html: string } {
  return { text: textOf(body, id), html: htmlOf(body, id) };
}

const idLine = (id: string) => `Notification ${id}`;

function textOf({ paragraphs, figures }: MessageBody, id: string): string {
  const table = figures ? [tableOf([figures.columns, ...figures.rows])] : [];
  const [first = '', ...others] = paragraphs;
  return `${[first, ...table, ...others, idLine(id)].join('\n\n')}\n`;
}

/** Columns side by side, for a font of equal widths. */
function tableOf(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd())
    .join('\n');
}

function htmlOf({ paragraphs, figures }: MessageBody, id: string): string {
  const paragraph = (text: string) => `<p>${escaped(text)}</p>`;
  const row = (tag: 'th' | 'td', cells: string[]) =>
    `<tr>${cells.map((cell) => `<${tag} align="left" style="padding: 2px 12px 2px 0">${escaped(cell)}</${tag}>`).join('')}</tr>`;
  const table = figures
    ? [`<table>${row('th', figures.columns)}${figures.rows.map((cells) => row('td', cells)).join('')}</table>`]
    : [];
  const [first = '', ...others] = paragraphs;
  const parts = [paragraph(first), ...table, ...others.map(paragraph), `<p><small>${idLine(id)}</small></p>`];
  return `<!doctype html><html><body>${parts.join('\n')}</body></html>\n`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => entities[sign]!);
}
