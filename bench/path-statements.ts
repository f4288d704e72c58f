/** The statements that PostgreSQL executes for a request, up to the end of its task, from its log. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../src/platform/db.ts';
import { createClient } from './client.ts';
import type { Cloudyard } from './cloudyard.ts';
import { newShare, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const creates = 20;
const gapMs = 150;

type CountStatements = (work: () => Promise<unknown>, times: number) => Promise<Map<string, number>>;

/**
 * Logs all statements while `use` runs. The function that it gets counts, for each text, the statements of `work`: it runs
 * `work` a number of times, then waits for as long without it, and subtracts. `work` must not poll, because a poll is a
 * statement, too.
 */
export async function withStatementLog<T>(
  { dir }: Workplace,
  db: Db,
  use: (count: CountStatements) => Promise<T>,
): Promise<T> {
  const file = join(dir, 'data', 'postgres.log');
  const logged = async (work: () => Promise<unknown>) => {
    const before = readFileSync(file).length;
    await work();
    return countTexts(readFileSync(file).subarray(before).toString());
  };
  const repeat = async (work: () => Promise<unknown>, times: number) => {
    for (let i = 0; i < times; i++) {
      await work();
      await sleep(gapMs);
    }
  };
  const log = async (what: string) => {
    await db.$client.query(`alter system set log_statement = '${what}'`);
    await db.$client.query('select pg_reload_conf()');
    await sleep(2 * gapMs);
  };
  await log('all');
  try {
    return await use(async (work, times) => {
      const began = performance.now();
      const during = await logged(() => repeat(work, times));
      const ms = performance.now() - began;
      const idle = await logged(() => sleep(ms));
      const each = [...during].map(([text, count]) => [text, (count - (idle.get(text) ?? 0)) / times] as const);
      return new Map(each.filter(([, count]) => count > 0.5).sort(([, a], [, b]) => b - a));
    });
  } finally {
    await log('none');
  }
}

export async function statementsOfCreate(workplace: Workplace, cloudyard: Cloudyard, db: Db): Promise<Row[]> {
  const client = createClient(cloudyard);
  const body = JSON.stringify(await newShare(cloudyard));
  const counts = await withStatementLog(workplace, db, (count) =>
    count(() => client('POST', sharesPath, body), creates),
  );
  for (const [text, each] of counts) process.stderr.write(`\n  ${each.toFixed(2)}  ${text.slice(0, 110)}`);
  const values = [sum(counts)];
  return [{ what: 'statements of one create to FINISHED', values, unit: 'statements', bar: { atMost: 8 } }];
}

export function sum(counts: Map<string, number>): number {
  return [...counts.values()].reduce((total, each) => total + each, 0);
}

function countTexts(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, text] of log.matchAll(/LOG: {2}(?:statement|execute [^:]*):\s+([^\n]*)/g)) {
    counts.set(text!, (counts.get(text!) ?? 0) + 1);
  }
  return counts;
}
