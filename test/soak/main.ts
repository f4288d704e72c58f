/**
 * `npm run soak -- [--nightly] [--minutes N] [--drivers real|simulated] [--plot FILE]`
 *
 * Realistic load for an hour (`--nightly`: 10 minutes) and a month of lifecycle policies in fast motion. Exits with 1 if memory,
 * descriptors, tables, indexes, disk or latency grow, or if anything differs from the model. The plot is soak.svg by default.
 *
 * Server and worker run as the `cloudyard` command runs them, but their young generation has its full size from the start. V8
 * enlarges it when much garbage is produced at once, at any time and up to its bound: by 16 MiB, three times, which would look
 * like growth of a process that keeps nothing.
 */
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { allocator, nodeFlags } from '../../bin/node-flags.mjs';
import { noFigures } from '../kills/figures.ts';
import { limits, sendOperations } from '../kills/sender.ts';
import { expectOk, newTenant, type Tenant } from '../model/world.ts';
import { exitOnSignals, openYard, type Yard } from '../processes.ts';
import { type Latencies, measure, newMeasurements, tableSizes } from './measurements.ts';
import { plot } from './plot.ts';
import { isFlat, trendOf } from './trend.ts';

const { values } = parseArgs({
  options: {
    nightly: { type: 'boolean', default: false },
    minutes: { type: 'string' },
    drivers: { type: 'string', default: 'real' },
    plot: { type: 'string', default: 'soak.svg' },
  },
});
const seconds = 60 * Number(values.minutes ?? (values.nightly ? 10 : 60));
/** Caches and tables fill in this time. */
const warmUpShare = 0.3;
const samples = 120;
const clients = 8;
const pauseMs = 400;
const hoursOfMonth = 30 * 24;
const volumesOfPolicies = 10;

const program = join(import.meta.dirname, 'collecting.ts');
const flags = [...nodeFlags, '--min-semi-space-size=16'];
const driver = values.drivers === 'real' ? 'auto' : 'simulated';
exitOnSignals();
const yard: Yard = await openYard(
  {
    CLOUDYARD_DEV: '1',
    CLOUDYARD_FILE_SHARE_DRIVER: driver,
    CLOUDYARD_LOAD_BALANCER_DRIVER: driver,
    CLOUDYARD_VOLUME_DRIVER: driver,
    CLOUDYARD_REGISTRY_DRIVER: driver,
    CLOUDYARD_LOG_LEVEL: 'error',
  },
  { isEmpty: true, ownAddresses: true },
);

async function run(): Promise<number> {
  const start = (...args: string[]) => yard.startFile(program, args, allocator, flags);
  const server = await start('serve');
  const worker = await start('worker', '--region', '1');
  const own = { server: server.pid, worker: worker.pid };
  const tenants: Tenant[] = [];
  for (let i = 0; i < clients; i++) tenants.push(await newTenant(yard, limits));
  const another = await newTenant(yard, {});
  await createPolicies(another);
  const [figures, measurements] = [noFigures(), newMeasurements()];
  const latencies: Latencies = { read: [], create: [] };
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1000;
  const isOver = () => elapsed() > seconds;
  const pause = () => sleep(pauseMs);
  const load = tenants.map((tenant, i) =>
    sendOperations(yard, tenant, { seed: randomInt(2 ** 31) + i, figures, isOver, clockMoves: true, pause }),
  );
  const month = passMonth(isOver);
  const probing = probe(another, latencies, isOver);
  const historyBefore = await tableSizes(yard, { history: true });
  let othersBefore: Record<string, number> | null = null;
  while (!isOver()) {
    await sleep((seconds * 1000) / samples);
    const at = elapsed();
    if (at < seconds * warmUpShare) {
      latencies.read.length = 0;
      latencies.create.length = 0;
    } else {
      othersBefore ??= await tableSizes(yard, { history: false });
      await measure(yard, own, latencies, measurements, at);
    }
  }
  await Promise.all([...load, probing]);
  const hours = await month;
  writeFileSync(values.plot, plot(measurements));
  const history = await tableSizes(yard, { history: true });
  console.info(
    `${figures.operations} operations, ${hours} hours of policies in ${Math.round(elapsed())} s; ${values.plot}`,
  );
  for (const [name, bytes] of Object.entries(history)) {
    const perOperation = (bytes - (historyBefore[name] ?? 0)) / Math.max(1, figures.operations);
    console.info(`history: ${name} ${mibOf(bytes)} MiB, ${perOperation.toFixed(0)} bytes an operation`);
  }
  for (const [name, bytes] of Object.entries(await tableSizes(yard, { history: false }))) {
    const before = othersBefore?.[name] ?? 0;
    if (bytes - before > 256 * 1024) console.info(`larger: ${name} ${mibOf(before)} to ${mibOf(bytes)} MiB`);
  }
  for (const failure of figures.failures) console.info(`wrong: ${failure}`);
  return printTrends(measurements) + figures.failures.length > 0 ? 1 : 0;
}

function mibOf(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(1);
}

/** Returns the number of series that grow. */
function printTrends(measurements: ReturnType<typeof newMeasurements>): number {
  let growing = 0;
  for (const { title, unit, points, ...tolerance } of Object.values(measurements)) {
    const trend = trendOf(points);
    const flat = isFlat(trend, tolerance);
    if (!flat) growing += 1;
    const figures = `level ${trend.level.toFixed(1)} ${unit}, growth ${trend.growth.toFixed(1)} ${unit}`;
    console.info(`${flat ? 'flat' : 'GROWS'}: ${title}: ${figures}`);
  }
  return growing;
}

/** Hourly snapshots of several volumes, of which three are retained. */
async function createPolicies({ projectId, token }: Tenant): Promise<void> {
  const path = (kind: string) => `/cloud/v1/${kind}/${projectId}/1`;
  const volumes: string[] = [];
  for (let i = 0; i < volumesOfPolicies; i++) {
    const given = { name: `volume ${i}`, source: 'new-volume', size: 1 };
    const { tasks } = expectOk(await yard.post(path('volumes'), given, { token }));
    const task = expectOk(await yard.get(`/cloud/v1/tasks/${tasks[0]}?wait=30`, { token }));
    volumes.push(task.created_resources.volumes[0]);
  }
  const schedules = [{ type: 'interval', hours: 1, max_quantity: 3 }];
  const policy = { name: 'hourly', action: 'volume_snapshot', schedules, volume_ids: volumes };
  expectOk(await yard.post(path('lifecycle_policy'), policy, { token }));
}

/** Advances the clock by a month in the time of the soak. Returns the hours that passed. */
async function passMonth(isOver: () => boolean): Promise<number> {
  let hours = 0;
  while (!isOver() && hours < hoursOfMonth) {
    const began = performance.now();
    expectOk(await yard.post('/cloudyard/v1/dev/clock', { advance_seconds: 3600 }));
    hours += 1;
    await sleep(Math.max(0, (seconds * 1000) / hoursOfMonth - (performance.now() - began)));
  }
  return hours;
}

/** Measures the latency of a read and of the acceptance of a create. */
async function probe({ projectId, token }: Tenant, latencies: Latencies, isOver: () => boolean): Promise<void> {
  const timed = async (name: keyof Latencies, send: () => Promise<{ status: number }>) => {
    const began = performance.now();
    const { status } = await send();
    if (status < 300) latencies[name].push(performance.now() - began);
  };
  const keys = `/cloud/v1/caas/keys/${projectId}/1`;
  for (let i = 0; !isOver(); i++) {
    const name = `probe-${i}`;
    await timed('read', () => yard.get(`/cloud/v1/networks/${projectId}/1`, { token }));
    await timed('create', () => yard.post(keys, { name, containers: [] }, { token }));
    await yard.delete(`${keys}/${name}`, { token });
    await sleep(pauseMs / 4);
  }
}

const code = await run().finally(() => yard.cleanUp());
process.exit(code);
