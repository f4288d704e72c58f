/** The statements that PostgreSQL executes for one create to FINISHED, from its log. */
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

/**
 * Logs all statements of two equally long times: one with creates, one after the other, and one without. Their difference,
 * for each text, is the creates'. The client does not poll, because a poll is a statement, too.
 */
export async function statementsOfCreate(workplace: Workplace, cloudyard: Cloudyard, db: Db): Promise<Row[]> {
  const client = createClient(cloudyard);
  const body = JSON.stringify(await newShare(cloudyard));
  const logged = async (work: () => Promise<unknown>) => {
    const file = join(workplace.dir, 'data', 'postgres.log');
    const before = readFileSync(file, 'utf8').length;
    for (let i = 0; i < creates; i++) {
      await work();
      await sleep(gapMs);
    }
    return countTexts(readFileSync(file, 'utf8').slice(before));
  };
  const log = async (what: string) => {
    await db.$client.query(`alter system set log_statement = '${what}'`);
    await db.$client.query('select pg_reload_conf()');
    await sleep(2 * gapMs);
  };
  await log('all');
  const during = await logged(() => client('POST', sharesPath, body));
  const idle = await logged(async () => {});
  await log('none');
  const texts = [...during].map(([text, count]) => ({ text, each: (count - (idle.get(text) ?? 0)) / creates }));
  const counted = texts.filter(({ each }) => each > 0.2).sort((a, b) => b.each - a.each);
  for (const { text, each } of counted) process.stderr.write(`\n  ${each.toFixed(2)}  ${text.slice(0, 110)}`);
  const total = counted.reduce((sum, { each }) => sum + each, 0);
  return [{ what: 'statements of one create to FINISHED', values: [total], unit: 'statements', bar: { atMost: 8 } }];
}

function countTexts(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, text] of log.matchAll(/LOG: {2}(?:statement|execute [^:]*): ([^\n]*)/g)) {
    counts.set(text!, (counts.get(text!) ?? 0) + 1);
  }
  return counts;
}
