/** The table that a run prints. */
import { median, spread } from './rounds.ts';

export type Row = Measured | NotMeasured;

interface Measured {
  what: string;
  /** The result of each round; the median counts. */
  values: number[];
  unit: keyof typeof formats;
  /** The two sides of a ratio. */
  measured?: string;
  peer?: string;
  bar: { atLeast: number } | { atMost: number };
}

interface NotMeasured {
  what: string;
  why: string;
}

const formats = {
  ratio: (value: number) => value.toFixed(2),
  ms: (value: number) => `${value.toFixed(0)} ms`,
  s: (value: number) => `${value.toFixed(1)} s`,
  statements: (value: number) => value.toFixed(1),
  failures: (value: number) => `${value} failed`,
  MB: (value: number) => `${value.toFixed(0)} MB`,
};

const heads = ['what', 'Cloudyard', 'peer', 'value', 'rounds', 'bar', 'reached'];

export function tableOf(rows: Row[]): string {
  const cells = [heads, ...rows.map((row) => ('why' in row ? [row.what, row.why] : cellsOf(row)))];
  // The reason of a skipped row spans all columns.
  const widthOf = (row: string[], column: number) => (column === 0 || row.length > 2 ? row[column]!.length : 0);
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => widthOf(row, column))));
  const [head, ...lines] = cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  '));
  return [head, '-'.repeat(head!.length), ...lines].map((line) => line!.trimEnd()).join('\n');
}

function cellsOf({ what, measured = '', peer = '', values, unit, bar }: Measured): string[] {
  const format = formats[unit];
  const value = median(values);
  const rounds = values.length > 1 ? spread(values).map(format).join(' – ') : '';
  const [sign, limit, reached] =
    'atLeast' in bar ? ['≥', bar.atLeast, value >= bar.atLeast] : ['≤', bar.atMost, value <= bar.atMost];
  return [what, measured, peer, format(value), rounds, `${sign} ${format(limit)}`, reached ? 'yes' : 'NO'];
}

/** Formats a rate for the columns of the two sides. */
export function perSecond(values: number[]): string {
  return `${Math.round(median(values)).toLocaleString('en-US')}/s`;
}
