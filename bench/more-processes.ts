/** GET of one share with two processes of the API, against one. The load generator runs on the same processors. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { seedShares, sharesPath } from './shares.ts';
import { perSecond } from './table.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const rounds = 5;
const seconds = 2;
const warmUpSeconds = 3;
const connections = 32;

export async function moreProcesses(workplace: Workplace): Promise<Row[]> {
  const one = await serverWith(1, workplace);
  const two = await serverWith(2, workplace);
  for (const side of [one, two]) await side(warmUpSeconds);
  const measured = await interleave(rounds, { one: () => one(seconds), two: () => two(seconds) });
  return [
    {
      what: 'get share, 2 processes / 1',
      values: ratios(measured.two, measured.one),
      measured: perSecond(measured.two),
      peer: perSecond(measured.one),
      unit: 'ratio',
      bar: { atLeast: 1.3 },
    },
  ];
}

/** Starts a server with a database of its own. Returns what measures its requests a second. */
async function serverWith(processes: number, workplace: Workplace): Promise<(length: number) => Promise<number>> {
  const own = { ...workplace, dir: join(workplace.dir, String(processes)) };
  mkdirSync(own.dir, { mode: 0o755 });
  const settings = { CLOUDYARD_PROCESSES: String(processes) };
  const cloudyard = await startCloudyard(own, { command: 'serve', settings });
  await seedShares((await openServices(own, cloudyard)).db, cloudyard, 1, 1000);
  const { results } = await cloudyard.request('GET', `${sharesPath}?limit=1&offset=500`);
  const { headers } = cloudyard;
  const url = `${cloudyard.url}${sharesPath}/${results[0].id}`;
  return (length) => requestsPerSecond(own, { method: 'GET', url, headers, connections, seconds: length });
}
