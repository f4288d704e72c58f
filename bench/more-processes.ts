/** GET of one share with two processes of the API, against one. The load generator runs on the same processors. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { seedShares, sharesPath } from './shares.ts';
import { perSecond, type Row } from './table.ts';
import { cpuTimeOf } from './usage.ts';
import type { Workplace } from './workplace.ts';

const rounds = 5;
const seconds = 2;
/** Each of two processes compiles its hot functions, with half of the requests each. */
const warmUpSeconds = 10;
const limitSeconds = 5;
const connections = 32;

export async function moreProcesses(workplace: Workplace): Promise<Row[]> {
  const one = await serverWith(1, workplace);
  const two = await serverWith(2, workplace);
  for (const side of [one, two]) await side.run(warmUpSeconds);
  const measured = await interleave(rounds, { one: () => one.run(seconds), two: () => two.run(seconds) });
  return [
    await limitRow(one),
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

interface Side {
  cloudyard: Cloudyard;
  /** Returns the requests a second. `length` in seconds. */
  run(length: number): Promise<number>;
}

/** What two processors can reach at most, if neither is ever idle and two processes use no more CPU time a request than one. */
async function limitRow({ cloudyard, run }: Side): Promise<Row> {
  const cpuTime = await cpuTimeOf(cloudyard);
  const before = cpuTime();
  const requests = (await run(limitSeconds)) * limitSeconds;
  const after = cpuTime();
  const parts = (['node', 'postgres', 'generators'] as const).map((part) => (after[part] - before[part]) / requests);
  const [node, postgres, generator] = parts.map((each) => `${(each * 1000).toFixed(1)} µs`);
  const limit = (2 * parts[0]!) / parts.reduce((sum, each) => sum + each);
  const why = `Node ${node}, PostgreSQL ${postgres}, generator ${generator}: on 2 processors the next row is at most ${limit.toFixed(2)}`;
  return { what: 'CPU time of a get share, 1 process', why };
}

/** Starts a server with a database of its own. */
async function serverWith(processes: number, workplace: Workplace): Promise<Side> {
  const own = { ...workplace, dir: join(workplace.dir, String(processes)) };
  mkdirSync(own.dir, { mode: 0o755 });
  const settings = { CLOUDYARD_PROCESSES: String(processes) };
  const cloudyard = await startCloudyard(own, { command: 'serve', settings });
  await seedShares((await openServices(own, cloudyard)).db, cloudyard, 1, 1000);
  const { results } = await cloudyard.request('GET', `${sharesPath}?limit=1&offset=500`);
  const { headers } = cloudyard;
  const url = `${cloudyard.url}${sharesPath}/${results[0].id}`;
  const load = { method: 'GET' as const, url, headers, connections };
  return { cloudyard, run: (length) => requestsPerSecond(own, { ...load, seconds: length }) };
}
