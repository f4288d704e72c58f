/** Time from the create of a share to the response that its task is FINISHED, measured by the client. */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, finished } from './client.ts';
import { startCloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import { median, quantile } from './rounds.ts';
import { liftQuotas, newShare, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const perSecond = 50;
const rounds = 3;
const seconds = 5;
const warmUpSeconds = 3;

export async function finishShare(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  await liftQuotas(cloudyard);
  const client = createClient(cloudyard);
  const body = JSON.stringify(await newShare(cloudyard));
  const file = await open(join(workplace.dir, 'flushed'), 'w');
  const create = () => finished(client, 'POST', sharesPath, body);
  await latencies(create, warmUpSeconds);
  const [creates, flushes]: [number[][], number[][]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    await quiet();
    const [ofCreate, ofFlush] = await Promise.all([latencies(create, seconds), latencies(() => flush(file), seconds)]);
    creates.push(ofCreate);
    flushes.push(ofFlush);
  }
  await file.close();
  const row = (what: string, q: number, bar: number): Row => ({
    what: `create to FINISHED at ${perSecond}/s, ${what}`,
    values: creates.map((round) => quantile(round, q)),
    peer: `${median(flushes.map((round) => quantile(round, q))).toFixed(0)} ms`,
    unit: 'ms',
    bar: { atMost: bar },
  });
  return [row('p50', 0.5, 12), row('p99', 0.99, 60)];
}

/** Milliseconds to write one page of PostgreSQL and flush it: no create can commit while the disk does not flush. */
async function flush(file: FileHandle): Promise<number> {
  const began = performance.now();
  await file.write(Buffer.alloc(8192), 0, 8192, 0);
  await file.datasync();
  return performance.now() - began;
}

/** Calls at a steady rate, independent of how long each call takes. */
async function latencies(call: () => Promise<number>, length: number): Promise<number[]> {
  const began = performance.now();
  const calls = Array.from({ length: length * perSecond }, async (_, i) => {
    await sleep(Math.max(0, began + (i * 1000) / perSecond - performance.now()));
    return call();
  });
  return Promise.all(calls);
}
