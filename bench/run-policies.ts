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
const many = 100_000;
const rounds = 5;
const patienceMs = 60_000;

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
  const { db, notifyFailedRun: notify } = services;
  await makeDue(db, due, new Date(Date.now() - 1000));
  const deps = { ...services, log: silentLogger, clock: systemClock, notify, regionIds: [1] };
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
  for (let round = 1; round <= rounds; round++) {
    const at = new Date(Date.now() + 2000);
    await makeDue(db, due, at);
    const lateness = await started(db, at);
    claimed.push(lateness.claimed);
    asked.push(lateness.asked);
  }
  return [
    { what: `${due} due in one instant: until all are claimed`, values: claimed, unit: 's', bar: { atMost: 2 } },
    { what: 'until the last snapshot is asked for', values: asked, unit: 's', bar: { atMost: 5 } },
  ];
}

/** Seconds from the instant to the last run, and to the last snapshot. */
async function started(db: Db, at: Date): Promise<{ claimed: number; asked: number }> {
  for (const giveUp = performance.now() + patienceMs; performance.now() < giveUp; ) {
    const { rows } = await db.$client.query(
      `select count(*)::int as count, extract(epoch from max(r.started_at) - $1)::float8 as claimed,
         extract(epoch from max(s.created_at) - $1)::float8 as asked
       from lifecycle_policy_runs r join lifecycle_policy_run_volumes rv on rv.run_id = r.id
         join snapshots s on s.id = rv.snapshot_id
       where r.scheduled_at = $1`,
      [at],
    );
    if (rows[0].count === due) return rows[0];
    await sleep(250);
  }
  throw new Error(`not all ${due} runs were started within ${patienceMs / 1000} s`);
}
