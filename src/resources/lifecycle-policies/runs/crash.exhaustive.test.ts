import { beforeAll, describe, expect, it } from 'vitest';
import { crashEverywhere } from '../../../../test/crash-harness.ts';
import { useCloudyard } from '../../../../test/harness.ts';
import { silentLogger } from '../../../platform/log.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { Reconciler } from '../../../tasks/reconcile.ts';
import type { Message } from '../../notifications/service.ts';
import { createLifecyclePolicyDuties, startDueRuns } from './reconcile.ts';

const cloud = useCloudyard({ driver: null });
const policies = '/cloud/v1/lifecycle_policy/1/1';
const noDriver = {};

beforeAll(async () => {
  await cloud.db.$client.query('create table notified (run_id uuid)');
  await cloud.patch('/cloudyard/v1/clients/1/quotas', {
    region_id: 1,
    volume_count_limit: 100_000,
    volume_size_limit: 100_000,
  });
});

const depsOn = (db: Db) => ({
  ...cloud.services,
  db,
  log: silentLogger,
  // Written in the transaction, like a notification.
  notify: (tx: Tx, { data }: Message) => tx.$client.query('insert into notified values ($1)', [data['run_id']]),
  regionIds: [1],
  pollSeconds: 1,
});

const order = ['start', 'request', 'settle', 'expire', 'end'] as const;
type Duty = (typeof order)[number];

const perform = (which: Duty, db = cloud.db) => createLifecyclePolicyDuties(depsOn(db))[order.indexOf(which)]!.work();

/** One of the periodic duties as a reconciler, so that the crash harness can interrupt it at every statement. */
function duty(db: Db, which: Duty): Reconciler {
  return {
    resource: 'duty',
    async reconcile() {
      await perform(which, db);
      return { kind: 'done' };
    },
    recordFailure: async () => undefined,
    findPending: async () => [],
    findDrift: async () => [],
  };
}

const sql = async (text: string, ...values: unknown[]) => (await cloud.db.$client.query(text, values)).rows;

/** A volume in the state that follows a successful create on a host. */
async function newVolume(): Promise<string> {
  const { body } = await cloud.post('/cloud/v1/volumes/1/1', { name: 'data', size: 1, source: 'new-volume' });
  const [task] = await sql(
    `update tasks set state = 'FINISHED' where id = $1 returning resource_id as id`,
    body.tasks[0],
  );
  await sql(
    `update volumes set status = 'available', observed_size = size, observed_generation = generation where id = $1`,
    task.id,
  );
  return task.id;
}

const schedule = { type: 'interval', hours: 1, max_quantity: 1, retention_time: { hours: 3 } };

/** Creates a policy with a due schedule for a new volume and suspends all earlier schedules. Returns the id of the schedule. */
async function duePolicy(): Promise<string> {
  await sql('update lifecycle_policy_schedules set next_run_at = null');
  const body = { action: 'volume_snapshot', name: 'policy', schedules: [schedule], volume_ids: [await newVolume()] };
  const policy = (await cloud.post(policies, body)).body;
  cloud.clock.advance(3600);
  return policy.schedules[0].id;
}

/** The same with a started run. Returns the id of the `lifecycle_policy_run_volumes` row. */
async function startedRun(): Promise<string> {
  const scheduleId = await duePolicy();
  await startDueRuns(depsOn(cloud.db));
  const [row] = await sql(
    `select rv.id from lifecycle_policy_run_volumes rv join lifecycle_policy_runs r on r.id = rv.run_id
     where r.schedule_id = $1 and rv.state = 'pending'`,
    scheduleId,
  );
  return row.id;
}

async function requestedSnapshot(): Promise<string> {
  const id = await startedRun();
  await perform('request');
  return id;
}

/** Records the outcome of the snapshot on the host: success or failure. */
async function recordOutcome(id: string, status: 'available' | 'error'): Promise<void> {
  await sql(
    `update snapshots set status = $2, observed_generation = generation
     where id = (select snapshot_id from lifecycle_policy_run_volumes where id = $1)`,
    id,
    status,
  );
  await sql(
    `update tasks set state = $2, error = 'The disk is broken.' where resource_id in (
       select snapshot_id::text from lifecycle_policy_run_volumes where id = $1)`,
    id,
    status === 'error' ? 'ERROR' : 'FINISHED',
  );
}

/** A second run of a schedule whose first snapshot succeeded. Returns the id of its row. */
async function secondRun(): Promise<string> {
  const first = await requestedSnapshot();
  await recordOutcome(first, 'available');
  await perform('settle');
  cloud.clock.advance(3600);
  await perform('start');
  const [row] = await sql(
    `select rv.id from lifecycle_policy_run_volumes rv
     where volume_id = (select volume_id from lifecycle_policy_run_volumes where id = $1) and state = 'running'`,
    first,
  );
  return row.id;
}

/** Everything recorded about the runs of a schedule, oldest first. */
async function world(id: string, by: 'schedule' | 'volume') {
  // Ends a run whose worker died after settling its last volume.
  await perform('end');
  const rows = await sql(
    `select rv.state, r.done_at is not null as done, s.status as snapshot, rv.message,
            jsonb_array_length(rv.expired)::int as expired, rv.expire_at is not null as expires,
            (select count(*)::int from snapshots n where n.schedule_id = r.schedule_id and n.scheduled_at = r.scheduled_at) as made,
            (select count(*)::int from tasks t where t.resource_id = rv.snapshot_id::text and t.task_type = 'create_snapshot') as tasks
     from lifecycle_policy_runs r join lifecycle_policy_run_volumes rv on rv.run_id = r.id
       left join snapshots s on s.id = rv.snapshot_id
     where r.schedule_id = ${by === 'schedule' ? '$1' : '(select r.schedule_id from lifecycle_policy_runs r join lifecycle_policy_run_volumes v on v.run_id = r.id where v.id = $1)'}
     order by r.scheduled_at`,
    id,
  );
  return rows;
}

const running = {
  state: 'running',
  done: false,
  snapshot: 'creating',
  message: null,
  expired: 0,
  expires: false,
  made: 1,
  tasks: 1,
};
const made = { ...running, state: 'made', done: true, snapshot: 'available', expires: true };

async function everywhere(
  arrange: () => Promise<string>,
  reconciler: (db: Db) => Reconciler,
  check: (id: string) => Promise<void>,
): Promise<void> {
  const { db, services } = cloud;
  const figures = await crashEverywhere({ db, tasks: services.tasks, driver: noDriver, reconciler, arrange, check });
  expect(figures.injected).toBeGreaterThan(10);
}

describe('if the scheduler fails or dies at any statement, any number of times', () => {
  it(
    'a due schedule starts one run',
    () =>
      everywhere(
        duePolicy,
        (db) => duty(db, 'start'),
        // A dead connection holds its locks for a moment, and locked rows wait for the next scan.
        async (id) => {
          const scan = async () => {
            await perform('start');
            await perform('request');
            return world(id, 'schedule');
          };
          await expect.poll(scan, { timeout: 30_000 }).toEqual([running]);
        },
      ),
    120_000,
  );

  it(
    'each volume of a run gets one snapshot',
    () =>
      everywhere(
        startedRun,
        (db) => duty(db, 'request'),
        async (id) => {
          const scan = async () => (await perform('request'), world(id, 'volume'));
          await expect.poll(scan, { timeout: 30_000 }).toEqual([running]);
        },
      ),
    120_000,
  );

  it(
    'a successful snapshot is kept and expires the older one',
    () =>
      everywhere(
        async () => {
          const id = await secondRun();
          await recordOutcome(id, 'available');
          return id;
        },
        (db) => duty(db, 'settle'),
        async (id) =>
          expect(await world(id, 'volume')).toEqual([
            { ...made, snapshot: 'deleting' },
            { ...made, expired: 1 },
          ]),
      ),
    120_000,
  );

  it(
    'a failed snapshot is deleted and the older successful one is kept',
    () =>
      everywhere(
        async () => {
          const id = await secondRun();
          await recordOutcome(id, 'error');
          return id;
        },
        (db) => duty(db, 'settle'),
        async (id) =>
          expect(await world(id, 'volume')).toEqual([
            made,
            { ...running, state: 'failed', done: true, snapshot: 'deleting', message: 'The disk is broken.' },
          ]),
      ),
    120_000,
  );

  it('a failed run ends once and notifies its client once', () => {
    const failed = { ...running, state: 'failed', done: true, snapshot: 'deleting', message: 'The disk is broken.' };
    return everywhere(
      async () => {
        const id = await requestedSnapshot();
        await recordOutcome(id, 'error');
        return id;
      },
      (db) => duty(db, 'settle'),
      async (id) => {
        expect(await world(id, 'volume')).toEqual([failed]);
        const [notified] = await sql(
          `select s.failing, (select count(*)::int from notified where notified.run_id = r.id) as messages
           from lifecycle_policy_schedules s join lifecycle_policy_runs r on r.schedule_id = s.id
             join lifecycle_policy_run_volumes rv on rv.run_id = r.id
           where rv.id = $1`,
          id,
        );
        expect(notified).toEqual({ failing: true, messages: 1 });
      },
    );
  }, 120_000);

  it(
    'the retention time never expires the last successful snapshot',
    () =>
      everywhere(
        async () => {
          const id = await requestedSnapshot();
          await recordOutcome(id, 'available');
          await perform('settle');
          cloud.clock.advance(5 * 3600);
          return id;
        },
        (db) => duty(db, 'expire'),
        async (id) => expect(await world(id, 'volume')).toEqual([{ ...made, expires: false }]),
      ),
    120_000,
  );
});
