/** The whole path of a create, from the request to FINISHED. Simulated drivers. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, transaction } from '../src/platform/db.ts';
import type { Services } from '../src/main/services.ts';
import { startBareRoute } from './bare-server.ts';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { minimalTransactions } from './minimal-path.ts';
import { kindsFinished } from './path-kinds.ts';
import { statementsOfCreate } from './path-statements.ts';
import { missingPgbench } from './pgbench.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { liftQuotas, scope, shareLoad } from './shares.ts';
import { perSecond, type Row } from './table.ts';
import { createWorkplace, type Workplace } from './workplace.ts';

const rounds = 5;
const seconds = 3;
const connections = 16;
const backlog = 20_000;
const seedBatch = 1000;

export async function path(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  await liftQuotas(cloudyard);
  const { db } = await openServices(workplace, cloudyard);
  const rows = [
    ...(await sharesFinished(workplace, cloudyard, db)),
    ...(await statementsOfCreate(workplace, cloudyard, db)),
    ...(await kindsFinished(cloudyard)),
  ];
  await cloudyard.stop();
  const accepted = await acceptance(workplace).catch((error: Error) => [
    { what: 'creates accepted', why: error.message },
  ]);
  return [...rows, ...accepted];
}

/** Returns a measurement: creates over a number of connections, until no task is active; shares FINISHED a second. */
export async function finishedPerSecond(
  workplace: Workplace,
  cloudyard: Cloudyard,
  db: Db,
): Promise<(connections: number) => Promise<number>> {
  const load = await shareLoad(cloudyard);
  const done = () => db.$client.query(`select count(*) as count from tasks where state = 'FINISHED'`);
  return async (count) => {
    const before = (await done()).rows[0].count;
    const began = performance.now();
    await requestsPerSecond(workplace, { ...load, connections: count, seconds });
    await untilIdle(db);
    return ((await done()).rows[0].count - before) / ((performance.now() - began) / 1000);
  };
}

async function sharesFinished(workplace: Workplace, cloudyard: Cloudyard, db: Db): Promise<Row[]> {
  if (missingPgbench) return [{ what: 'shares FINISHED / minimal transactions', why: missingPgbench }];
  const finish = await finishedPerSecond(workplace, cloudyard, db);
  const transact = await minimalTransactions(cloudyard);
  await finish(connections);
  const measured = await interleave(rounds, {
    many: () => finish(connections),
    minimal: transact,
    one: () => finish(1),
  });
  const row = (what: string, values: number[], bar: number): Row => ({
    what: `shares FINISHED, ${what} / minimal transactions`,
    values: ratios(values, measured.minimal),
    measured: perSecond(values),
    peer: perSecond(measured.minimal),
    unit: 'ratio',
    bar: { atLeast: bar },
  });
  return [row(`${connections} connections`, measured.many, 0.2), row('1 connection', measured.one, 0.05)];
}

/** Waits until all tasks have ended. */
export async function untilIdle(db: Db): Promise<void> {
  for (;;) {
    const { rows } = await db.$client.query(`select from tasks where state in ('NEW', 'RUNNING') limit 1`);
    if (rows.length === 0) return;
    await sleep(5);
  }
}

/** Creates that the API of OpenStack Manila accepts, and requests that the bare route answers, per second on the same machine. */
const manila = { accepted: 18, bare: 46_000 };

/** Acceptance by `serve`, with an empty queue and before a backlog, each on its own server, and the bare route. */
async function acceptance(workplace: Workplace): Promise<Row[]> {
  const empty = await acceptingServer(workplace, 0);
  const full = await acceptingServer(workplace, backlog);
  const url = await startBareRoute(workplace, '{}');
  const bare = () => requestsPerSecond(workplace, { method: 'GET', url, headers: {}, connections, seconds: 1 });
  await bare();
  const measured = await interleave(rounds, { full, empty, bare });
  const scaled = measured.bare.map((rate) => (manila.accepted * rate) / manila.bare);
  return [
    {
      what: `creates accepted by serve before a backlog of ${backlog.toLocaleString('en-US')} / before none`,
      values: ratios(measured.full, measured.empty),
      measured: perSecond(measured.full),
      peer: perSecond(measured.empty),
      unit: 'ratio',
      bar: { atLeast: 0.9 },
    },
    {
      what: `creates accepted by serve, ${connections} connections / Manila's API, scaled by the bare route`,
      values: ratios(measured.empty, scaled),
      measured: perSecond(measured.empty),
      peer: perSecond(scaled),
      unit: 'ratio',
      bar: { atLeast: 30 },
    },
  ];
}

async function acceptingServer(workplace: Workplace, jobs: number): Promise<() => Promise<number>> {
  const own = createWorkplace();
  workplace.closing(own.clear);
  const cloudyard = await startCloudyard(own, { command: 'serve' });
  await liftQuotas(cloudyard);
  const services = await openServices(own, cloudyard);
  await seedJobs(services, jobs);
  const load = { ...(await shareLoad(cloudyard)), connections, seconds: 2 };
  const accept = () => requestsPerSecond(own, load);
  await accept();
  return async () => {
    const rate = await accept();
    await forgetShares(services.db, jobs);
    return rate;
  };
}

/** Tasks and jobs of shares that do not exist. */
async function seedJobs({ db, tasks }: Services, count: number): Promise<void> {
  // The weight multiplies the client's limit of tasks.
  const actor = { tokenId: 1, clientId: 1, role: 'admin', projectIds: null, operator: true, weight: 1000 } as const;
  for (let done = 0; done < count; done += seedBatch) {
    const requests = Array.from({ length: seedBatch }, () => ({
      context: { actor, requestId: 'backlog' },
      task: {
        type: 'create_sfs',
        key: { resource: 'file_share', id: randomUUID(), regionId: scope.regionId },
        projectId: scope.projectId,
        generation: 1,
      },
    }));
    await transaction(db, (tx) => tasks.enqueueAll(tx, requests));
  }
  await db.$client.query('vacuum analyze tasks');
}

/** Removes what a round has added, so that each round has the same queue. The last requests may still be running. */
async function forgetShares(db: Db, jobs: number): Promise<void> {
  let left = 0;
  for (let attempt = 1; attempt <= 50; attempt++) {
    // One statement: a create that commits between two would lose its task and keep its job.
    await db.$client.query(
      `with gone as (delete from tasks where request_id <> 'backlog' returning resource_id)
       delete from jobs where id in (select resource_id from gone)`,
    );
    const { rows } = await db.$client.query(`select count(*) as count from jobs where kind = 'file_share'`);
    left = rows[0].count;
    if (left === jobs) return;
    await sleep(100);
  }
  throw new Error(`${left} jobs are left of ${jobs}`);
}
