/** Time from the create of a share to the response that its task is FINISHED, measured by the client. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, createClient, finished } from './client.ts';
import { startCloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import { quantile } from './rounds.ts';
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
  await latencies(client, body, warmUpSeconds);
  const measured: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    await quiet();
    measured.push(await latencies(client, body, seconds));
  }
  const row = (what: string, q: number, bar: number): Row => ({
    what: `create to FINISHED at ${perSecond}/s, ${what}`,
    values: measured.map((round) => quantile(round, q)),
    unit: 'ms',
    bar: { atMost: bar },
  });
  return [row('p50', 0.5, 12), row('p99', 0.99, 60)];
}

/** Sends at a steady rate, independent of the response time. */
async function latencies(client: Client, body: string, length: number): Promise<number[]> {
  const began = performance.now();
  const shares = Array.from({ length: length * perSecond }, async (_, i) => {
    await sleep(Math.max(0, began + (i * 1000) / perSecond - performance.now()));
    return finished(client, 'POST', sharesPath, body);
  });
  return Promise.all(shares);
}
