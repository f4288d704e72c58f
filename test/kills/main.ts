/**
 * `npm run kills -- [--operations 100000] [--kills 1000] [--minutes 58] [--clients 32] [--seed N] [--drivers real|simulated]
 * [--report FILE]`
 *
 * Clients send random operations while random processes are killed. Ends when both numbers are reached, or after the minutes.
 * Exits with 1 if anything was lost, doubled, stuck or answered with a server error.
 */
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { expect } from 'vitest';
import { ENDING, layoutOf } from '../../src/drivers/disk/layout.ts';
import { idsIn } from '../../src/drivers/id-files.ts';
import { proxyOf } from '../e2e/balanced.ts';
import { expectHostEqualsRows } from '../e2e/storm.ts';
import { createRandom } from '../model/random.ts';
import { newTenant, supervise } from '../model/world.ts';
import { exitOnSignals, openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { noFigures } from './figures.ts';
import { killRandomly } from './killer.ts';
import { reportOf } from './report.ts';
import { limits, sendOperations } from './sender.ts';

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '100000' },
    kills: { type: 'string', default: '1000' },
    minutes: { type: 'string', default: '58' },
    clients: { type: 'string', default: '32' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    drivers: { type: 'string', default: 'real' },
    report: { type: 'string' },
  },
});
const [operations, kills, minutes] = [Number(values.operations), Number(values.kills), Number(values.minutes)];
const [clients, seed] = [Number(values.clients), Number(values.seed)];
const isReal = values.drivers === 'real';

const driver = isReal ? 'auto' : 'simulated';
exitOnSignals();
const yard: Yard = await openYard(
  {
    CLOUDYARD_FILE_SHARE_DRIVER: driver,
    CLOUDYARD_LOAD_BALANCER_DRIVER: driver,
    CLOUDYARD_VOLUME_DRIVER: driver,
    CLOUDYARD_REGISTRY_DRIVER: driver,
    CLOUDYARD_LOG_LEVEL: 'error',
    CLOUDYARD_SWEEP_SECONDS: '10',
  },
  { isEmpty: true, ownAddresses: true },
);

async function run(): Promise<number> {
  const server = await supervise(() => yard.start(['serve']));
  const worker = await supervise(() => yard.start(['worker', '--region', '1']));
  const tenants = [];
  for (let i = 0; i < clients; i++) tenants.push(await newTenant(yard, limits));
  const figures = noFigures();
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1000;
  const killed = () => Object.values(figures.kills).reduce((sum, count) => sum + count, 0);
  const isOver = () => elapsed() > minutes * 60 || (figures.operations >= operations && killed() >= kills);
  const everyMs = (minutes * 60_000) / kills / 1.3;
  const progress = setInterval(() => {
    console.info(
      `${Math.round(elapsed())} s: ${figures.operations} operations, ${killed()} kills, ${figures.failures.length} wrong`,
    );
  }, 15_000);
  const own = () => ({ server: server.pid(), worker: worker.pid() });
  const killing = killRandomly(yard, own, createRandom(seed), figures, everyMs, isOver);
  await Promise.all(tenants.map((tenant, i) => sendOperations(yard, tenant, { seed: seed + i, figures, isOver })));
  await killing;
  clearInterval(progress);
  const seconds = elapsed();
  const hostFailures = isReal ? await compareHost() : [];
  const drivers = isReal ? await driversOf(yard) : 'simulated';
  const report = reportOf({ figures, seconds, clients, drivers, seed, hostFailures });
  console.info(report);
  if (values.report) writeFileSync(values.report, report);
  server.stop();
  worker.stop();
  const wrong = figures.failures.length + hostFailures.length;
  const serverErrors = Object.keys(figures.statuses).some(
    (status) => Number(status) >= 500 && !['503', '507'].includes(status),
  );
  return wrong > 0 || serverErrors ? 1 : 0;
}

/** Compares the host with the rows of all clients, after the sweeps have had their time. */
async function compareHost(): Promise<string[]> {
  const failures: string[] = [];
  const settled = async (name: string, compare: () => Promise<void>) => {
    let last = '';
    const equal = () =>
      compare().then(
        () => true,
        (error: unknown) => ((last = String(error)), false),
      );
    await until(equal, 90, name).catch(() => failures.push(`${name}: ${last}`));
  };
  await settled('shares on the host', () => expectHostEqualsRows(yard));
  await settled('listeners of HAProxy', async () => {
    const rows = await yard.sql<{ id: string }>(
      `select l.id from lb_listeners l join load_balancers b on b.id = l.load_balancer_id
       where b.admin_state_up order by l.id`,
    );
    expect((await proxyOf(yard).has()).listeners).toEqual(rows.map(({ id }) => id));
  });
  for (const kind of ['volumes', 'snapshots'] as const) {
    await settled(kind, async () => {
      const rows = await yard.sql<{ id: string }>(`select id from ${kind} order by id`);
      expect(await idsIn(layoutOf(yard.dataDir)[kind], ENDING)).toEqual(rows.map(({ id }) => id));
    });
  }
  return failures;
}

async function driversOf({ get }: Yard): Promise<string> {
  const { body } = await get('/healthz/drivers', { token: null });
  const all = (body.drivers ?? body.workers?.flatMap((each: any) => each.drivers) ?? []) as {
    kind?: string;
    driver: string;
  }[];
  return [...new Set(all.map(({ kind, driver }) => `${kind ?? ''} ${driver}`.trim()))].join(', ') || 'real';
}

const code = await run().finally(() => yard.cleanUp());
process.exit(code);
