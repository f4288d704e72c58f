/** Pure: the contents of a delivery, from its rows, and the delay before the next attempt. */
import { withZone } from '../../platform/clock.ts';
import { escapeHtml } from '../../platform/html.ts';
import type { MessageBody } from './schema.ts';
import type { NotificationRow } from './store.ts';

const firstDelayMs = 5000;
export const maxDelayMs = 3_600_000;
/** A delivery without success for this time has failed. */
export const expiresAfterMs = 24 * 3_600_000;

/** The delay after this number of failures: 5, 10, 20 s … and then an hour. A receiver may ask for more, up to an hour. */
export function retryDelayMs(failures: number, askedSeconds = 0): number {
  return Math.min(Math.max(firstDelayMs * 2 ** (failures - 1), askedSeconds * 1000), maxDelayMs);
}

/** The body of a webhook call: the same text at each attempt. */
export function webhookBody({ id, type, clientId, createdAt, subject, data }: NotificationRow): string {
  return JSON.stringify({ id, type, client_id: clientId, created_at: withZone(createdAt), subject, data });
}

/** The two parts of an e-mail, with the same contents. */
export function emailParts({ body, id }: NotificationRow): { text: string; html: string } {
  return { text: textOf(body, id), html: htmlOf(body, id) };
}

const idLine = (id: string) => `Notification ${id}`;

function textOf({ paragraphs, figures }: MessageBody, id: string): string {
  const table = figures ? [tableOf([figures.columns, ...figures.rows])] : [];
  const [first = '', ...others] = paragraphs;
  return `${[first, ...table, ...others, idLine(id)].join('\n\n')}\n`;
}

/** For a monospaced font. */
function tableOf(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd())
    .join('\n');
}

function htmlOf({ paragraphs, figures }: MessageBody, id: string): string {
  const paragraph = (text: string) => `<p style="white-space: pre-line">${escapeHtml(text)}</p>`;
  const row = (tag: 'th' | 'td', cells: string[]) =>
    `<tr>${cells.map((cell) => `<${tag} align="left" style="padding: 2px 12px 2px 0">${escapeHtml(cell)}</${tag}>`).join('')}</tr>`;
  const table = figures
    ? [`<table>${row('th', figures.columns)}${figures.rows.map((cells) => row('td', cells)).join('')}</table>`]
    : [];
  const [first = '', ...others] = paragraphs;
  const parts = [paragraph(first), ...table, ...others.map(paragraph), `<p><small>${idLine(id)}</small></p>`];
  return `<!doctype html><html><body>${parts.join('\n')}</body></html>\n`;
}
