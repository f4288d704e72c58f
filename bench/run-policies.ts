/** A thousand schedules due at one instant: a scan among 100,000 policies, and the time until all are started. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/platform/clock.ts';
import type { Db } from '../src/platform/db.ts';
import { silentLogger } from '../src/platform/log.ts';
import { startAndRequest } from '../src/resources/lifecycle-policies/runs/reconcile.ts';
import { snapshots } from '../src/resources/snapshots/table.ts';
import { startCloudyard } from './cloudyard.ts';
import { deleteRuns, makeDue, seedPolicies } from './policies.ts';
import { interleave, median, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { liftQuotas } from './shares.ts';
import type { Row } from './table.ts';
import { createWorkplace, type Workplace } from './workplace.ts';

const due = 1000;
const few = 1000;
const steady = 25;
const many = 100_000;
const rounds = 5;
const timeoutMs = 120_000;

export async function runPolicies(workplace: Workplace): Promise<Row[]> {
  const other = createWorkplace();
  workplace.closing(other.clear);
  const among = { few: await aServer(other, few), many: await aServer(workplace, many) };
  const scans = await interleave(rounds, {
    few: () => scan(among.few),
    many: () => scan(among.many),
  });
  return [
    {
      what: `${due} runs started and their snapshots requested, of ${many.toLocaleString('en-US')} policies / of ${few.toLocaleString('en-US')}`,
      values: ratios(scans.many, scans.few),
      measured: `${median(scans.many).toFixed(0)} ms`,
      peer: `${median(scans.few).toFixed(0)} ms`,
      unit: 'ratio',
      bar: { atMost: 1.3 },
    },
    ...(await untilStarted(workplace)),
  ];
}

type Served = Awaited<ReturnType<typeof openServices>>;

/** A server without a worker, and its services in this process. */
async function aServer(workplace: Workplace, policies: number): Promise<Served> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  await liftQuotas(cloudyard);
  const services = await openServices(workplace, cloudyard);
  await seedPolicies(services.db, policies);
  return services;
}

async function scan(services: Served): Promise<number> {
  const { db, notifications } = services;
  await makeDue(db, due, new Date(Date.now() - 1000));
  const deps = { ...services, log: silentLogger, clock: systemClock, notify: notifications.issue, regionIds: [1] };
  const began = performance.now();
  await startAndRequest(deps);
  const took = performance.now() - began;
  const requested = await db.$count(snapshots);
  if (requested !== due) throw new Error(`${requested} snapshots were requested, but ${due} were due`);
  await deleteRuns(db);
  return took;
}

/** Measures a server with a worker, which scans for due schedules itself. */
async function untilStarted(workplace: Workplace): Promise<Row[]> {
  const own = createWorkplace();
  workplace.closing(own.clear);
  const cloudyard = await startCloudyard(own, { command: 'start' });
  await liftQuotas(cloudyard);
  const { db } = await openServices(own, cloudyard);
  await seedPolicies(db, few);
  // A minute after its start the worker corrects next runs that do not follow from their schedules, as those made due here.
  await sleep(70_000);
  const bursts: Started[] = [];
  const late: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const instant = new Date(Date.now() + 2000);
    await makeDue(db, due, instant);
    bursts.push(await started(db, due, instant));
    await spread(db, steady);
    late.push((await started(db, steady, instant)).latest);
  }
  const all = `${due} due at one instant`;
  const of = (which: keyof Started) => bursts.map((burst) => burst[which]);
  return [
    { what: `${all}: until all are claimed`, values: of('claimed'), unit: 's', bar: { atMost: 2 } },
    { what: 'until the last of their snapshots is requested', values: of('requested'), unit: 's', bar: { atMost: 2 } },
    { what: 'until the last of their runs is done', values: of('done'), unit: 's', bar: { atMost: 3 } },
    { what: '5 due a second: the slowest request for a snapshot', values: late, unit: 's', bar: { atMost: 1 } },
  ];
}

/** Units: seconds. */
interface Started {
  /** From the instant until the last run was claimed. */
  claimed: number;
  /** From the instant until all snapshots, with their tasks and jobs, were committed. */
  requested: number;
  /** From the instant until all snapshots were created and the runs ended. */
  done: number;
  /** The longest time from the instant of a schedule until its snapshot was requested. */
  latest: number;
}

/** Makes schedules due one after the other, five a second. */
async function spread(db: Db, count: number): Promise<void> {
  await makeDue(db, count, new Date(Date.now() + 1000));
  await db.$client.query(
    `update lifecycle_policy_schedules s set next_run_at = next_run_at + n.n * interval '200 milliseconds'
     from (select id, row_number() over () as n from lifecycle_policy_schedules where next_run_at < now() + interval '1 hour') n
     where n.id = s.id`,
  );
}

async function started(db: Db, count: number, instant: Date): Promise<Started> {
  const requested = await since(instant, db, 'lifecycle_policy_run_volumes where snapshot_id is not null', count);
  const done = await since(instant, db, 'lifecycle_policy_runs where done_at is not null', count);
  await since(instant, db, 'jobs', 0);
  const { rows } = await db.$client.query(
    `select max(extract(epoch from r.started_at - r.scheduled_at))::float8 as claimed,
            max(extract(epoch from s.created_at - r.scheduled_at))::float8 as latest
     from lifecycle_policy_runs r join lifecycle_policy_run_volumes rv on rv.run_id = r.id
       join snapshots s on s.id = rv.snapshot_id`,
  );
  await db.$client.query('delete from lifecycle_policy_runs');
  return { ...rows[0], requested, done };
}

/** Seconds from an instant until the number of rows is `expected`. */
async function since(instant: Date, db: Db, rows: string, expected: number): Promise<number> {
  for (const giveUp = performance.now() + timeoutMs; performance.now() < giveUp; ) {
    const [{ count }] = (await db.$client.query(`select count(*) as count from ${rows}`)).rows;
    if (count === expected) return (Date.now() - instant.getTime()) / 1000;
    await sleep(50);
  }
  throw new Error(`expected ${expected} rows of ${rows} within ${timeoutMs / 1000} s`);
}
