/** A thousand schedules that are due in one instant: among a hundred thousand policies, and until all are started. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/platform/clock.ts';
import type { Db } from '../src/platform/db.ts';
import { silentLogger } from '../src/platform/log.ts';
import { startDueRuns } from '../src/resources/lifecycle-policies/runs/reconcile.ts';
import { startCloudyard } from './cloudyard.ts';
import { forgetRuns, makeDue, seedPolicies } from './policies.ts';
import { interleave, median, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import type { Row } from './table.ts';
import { createWorkplace } from './workplace.ts';
import type { Workplace } from './workplace.ts';

const due = 1000;
const few = 1000;
const steady = 25;
const many = 100_000;
const rounds = 5;
const patienceMs = 120_000;

export async function runPolicies(workplace: Workplace): Promise<Row[]> {
  const other = createWorkplace();
  workplace.closing(other.clear);
  const among = { few: await aServer(other, few), many: await aServer(workplace, many) };
  const claimed = await interleave(rounds, {
    few: () => claimDue(among.few),
    many: () => claimDue(among.many),
  });
  return [
    {
      what: `${due} runs started of ${many.toLocaleString('en-US')} policies / of ${few.toLocaleString('en-US')}`,
      values: ratios(claimed.many, claimed.few),
      measured: `${median(claimed.many).toFixed(0)} ms`,
      peer: `${median(claimed.few).toFixed(0)} ms`,
      unit: 'ratio',
      bar: { atMost: 1.3 },
    },
    ...(await untilStarted(workplace)),
  ];
}

type Served = Awaited<ReturnType<typeof openServices>>;

/** One that accepts and leaves the work to nobody. */
async function aServer(workplace: Workplace, policies: number): Promise<Served> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  await seedPolicies(services.db, policies);
  return services;
}

async function claimDue(services: Served): Promise<number> {
  const { db, notifications } = services;
  await makeDue(db, due, new Date(Date.now() - 1000));
  const deps = { ...services, log: silentLogger, clock: systemClock, notify: notifications.issue, regionIds: [1] };
  const began = performance.now();
  const started = await startDueRuns(deps);
  const took = performance.now() - began;
  if (started !== due) throw new Error(`${started} runs were started, and ${due} were due`);
  await forgetRuns(db);
  return took;
}

/** A server that works, through its own look at what is due. */
async function untilStarted(workplace: Workplace): Promise<Row[]> {
  const own = createWorkplace();
  workplace.closing(own.clear);
  const cloudyard = await startCloudyard(own, { command: 'start' });
  const limits = { region_id: 1, volume_snapshots_count_limit: 1e9, volume_snapshots_size_limit: 1e9 };
  await cloudyard.request('PATCH', '/cloudyard/v1/clients/1/quotas', limits);
  const { db } = await openServices(own, cloudyard);
  await seedPolicies(db, few);
  const claimed: number[] = [];
  const asked: number[] = [];
  const late: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    await makeDue(db, due, new Date(Date.now() + 2000));
    const all = await started(db, due);
    claimed.push(all.claimed);
    asked.push(all.asked);
    await spread(db, steady);
    late.push((await started(db, steady)).asked);
  }
  return [
    { what: `${due} due in one instant: until all are claimed`, values: claimed, unit: 's', bar: { atMost: 2 } },
    { what: 'until the last of their snapshots is asked for', values: asked, unit: 's', bar: { atMost: 10 } },
    { what: '5 due a second: the latest to be asked for', values: late, unit: 's', bar: { atMost: 1 } },
  ];
}

/** Has some schedules be due one after the other, five a second. */
async function spread(db: Db, count: number): Promise<void> {
  await makeDue(db, count, new Date(Date.now() + 1000));
  await db.$client.query(
    `update lifecycle_policy_schedules s set next_run_at = next_run_at + n.n * interval '200 milliseconds'
     from (select id, row_number() over () as n from lifecycle_policy_schedules where next_run_at < now() + interval '1 hour') n
     where n.id = s.id`,
  );
}

/** When all is done again: seconds from its instant to when the last run was claimed, and the last snapshot asked for. */
async function started(db: Db, count: number): Promise<{ claimed: number; asked: number }> {
  for (const giveUp = performance.now() + patienceMs; performance.now() < giveUp; ) {
    const { rows } = await db.$client.query(
      `select count(*)::int as count, max(extract(epoch from r.started_at - r.scheduled_at))::float8 as claimed,
         max(extract(epoch from s.created_at - r.scheduled_at))::float8 as asked
       from lifecycle_policy_runs r join lifecycle_policy_run_volumes rv on rv.run_id = r.id
         join snapshots s on s.id = rv.snapshot_id
       where r.done_at is not null`,
    );
    if (rows[0].count === count && (await idle(db))) {
      await db.$client.query('delete from lifecycle_policy_runs');
      return rows[0];
    }
    await sleep(250);
  }
  throw new Error(`${count} runs were not done within ${patienceMs / 1000} s`);
}

async function idle(db: Db): Promise<boolean> {
  return (await db.$client.query('select from graphile_worker.jobs limit 1')).rows.length === 0;
}
