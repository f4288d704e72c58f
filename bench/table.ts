/** The one table that a run prints. */
import { median, spread } from './rounds.ts';

export interface Row {
  what: string;
  /** The figure of each round; the median counts. Absent when it was not measured, and `note` says why. */
  values?: number[];
  unit?: keyof typeof formats;
  /** What the ratio is made of, in words. */
  measured?: string;
  peer?: string;
  bar?: { atLeast: number } | { atMost: number };
  note?: string;
}

const formats = {
  ratio: (value: number) => value.toFixed(2),
  ms: (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`,
  s: (value: number) => `${value.toFixed(1)} s`,
  MB: (value: number) => `${value.toFixed(0)} MB`,
};

const heads = ['what', 'Cloudyard', 'peer', 'value', 'rounds', 'bar', 'reached'];

export function tableOf(rows: Row[]): string {
  const cells = [heads, ...rows.map(cellsOf)];
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd());
  return [lines[0], '-'.repeat(Math.max(...lines.map((line) => line.length))), ...lines.slice(1)].join('\n');
}

function cellsOf(row: Row): string[] {
  const { what, measured = '', peer = '', values, unit = 'ratio', bar, note } = row;
  if (!values) return [what, note ?? ''];
  const format = formats[unit];
  const value = median(values);
  const [low, high] = spread(values);
  const rounds = values.length > 1 ? `${format(low)} – ${format(high)}` : '';
  return [what, measured, peer, format(value), rounds, ...(bar ? barCells(bar, value, format) : [note ?? ''])];
}

function barCells(bar: NonNullable<Row['bar']>, value: number, format: (value: number) => string): string[] {
  if ('atLeast' in bar) return [`≥ ${format(bar.atLeast)}`, value >= bar.atLeast ? 'yes' : 'NO'];
  return [`≤ ${format(bar.atMost)}`, value <= bar.atMost ? 'yes' : 'NO'];
}

/** For the columns that show what a ratio is made of. */
export function perSecond(values: number[]): string {
  return `${Math.round(median(values)).toLocaleString('en-US')}/s`;
}
