/** Snapshots due at the same instant are requested in batches across clients; one failing row does not block its batch. */
import { afterEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { silentLogger } from '../../../platform/log.ts';
import { createLifecyclePolicyDuties, startAndRequest, startDueRuns } from './reconcile.ts';

const cloud = useCloudyard({ driver: null });
type Client = Awaited<ReturnType<typeof cloud.newClient>>;

const sql = async (text: string, ...values: unknown[]) => (await cloud.db.$client.query(text, values)).rows;

function deps() {
  const { db, services } = cloud;
  return { ...services, db, log: silentLogger, notify: services.notifications.issue, regionIds: [1], pollSeconds: 1 };
}
const requestPending = (changed = {}) => createLifecyclePolicyDuties({ ...deps(), ...changed })[1]!.work();

/** Volumes in the state that follows a successful create, each with a policy of its own, in order of creation. */
async function policies(client: Client, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const body = { name: 'data', size: 2, source: 'new-volume' };
    const { tasks } = (await cloud.post(`/cloud/v1/volumes/${client.projectId}/1`, body, client)).body;
    const [made] = await sql(`update tasks set state = 'FINISHED' where id = $1 returning resource_id as id`, tasks[0]);
    await sql(
      `update volumes set status = 'available', observed_size = size, observed_generation = generation where id = $1`,
      made.id,
    );
    const policy = { action: 'volume_snapshot', name: 'policy', schedules: [hourly], volume_ids: [made.id] };
    const path = `/cloud/v1/lifecycle_policy/${client.projectId}/1`;
    expect((await cloud.post(path, policy, client)).status).toBe(200);
    ids.push(made.id);
  }
  return ids;
}
const hourly = { type: 'interval', hours: 1 };

/** Suspends the schedules of earlier tests. */
afterEach(() => sql('update lifecycle_policy_schedules set next_run_at = null'));

/** The run state of each volume; also asserts the number of its snapshots, tasks and jobs. */
async function states(volumes: string[]): Promise<{ state: string; message: string | null }[]> {
  const rows = await sql(
    `select rv.state, rv.message,
       (select count(*)::int from snapshots s where s.volume_id = rv.volume_id) as snapshots,
       (select count(*)::int from tasks t where t.resource_id = rv.snapshot_id::text and t.id = (
          select creator_task_id from snapshots s where s.id = rv.snapshot_id)) as tasks,
       (select count(*)::int from jobs j where j.kind = 'snapshot' and j.id = rv.snapshot_id::text) as jobs
     from lifecycle_policy_run_volumes rv where volume_id = any($1::uuid[])
     order by array_position($1::uuid[], rv.volume_id)`,
    volumes,
  );
  return rows.map(({ state, message, snapshots, tasks, jobs }) => {
    const expected = state === 'running' ? 1 : 0;
    expect([state, snapshots, tasks, jobs]).toEqual([state, expected, expected, expected]);
    return { state, message };
  });
}
const stateOf = async (volumes: string[]) => (await states(volumes)).map(({ state }) => state);
const all = (count: number, state: string) => Array.from({ length: count }, () => state);

const limit = (client: Client, limits: object) =>
  cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, ...limits });

describe('snapshots due at the same instant', () => {
  it('are requested in one pass for all clients, and each client has its own usage', async () => {
    const [one, other] = [await cloud.newClient(), await cloud.newClient()];
    await limit(one, { volume_snapshots_count_limit: 5, volume_snapshots_size_limit: 100 });
    const volumes = [...(await policies(one, 4)), ...(await policies(other, 3))];
    cloud.clock.advance(3600);
    await startAndRequest(deps());
    expect(await stateOf(volumes)).toEqual(all(7, 'running'));
    const usages = await sql(
      `select client_id, kind, usage::int, alerted_at is not null as alerted from quota_counters
       where kind like 'volume_snapshots%' and client_id in ($1, $2) order by client_id, kind`,
      one.clientId,
      other.clientId,
    );
    const kinds = (client: Client, count: number, alerted: boolean) => [
      { client_id: client.clientId, kind: 'volume_snapshots_count', usage: count, alerted },
      { client_id: client.clientId, kind: 'volume_snapshots_size', usage: 2 * count, alerted: false },
    ];
    expect(usages).toEqual([...kinds(one, 4, true), ...kinds(other, 3, false)]);
    const crossings = await sql('select kind from quota_crossings where client_id = $1', one.clientId);
    expect(crossings).toEqual([{ kind: 'volume_snapshots_count' }]);
    const tasks = await sql(
      `select distinct client_id, project_id from tasks where task_type = 'create_snapshot' order by client_id`,
    );
    expect(tasks).toEqual(
      [one, other].map(({ clientId, projectId }) => ({ client_id: clientId, project_id: projectId })),
    );
  });

  it('use the whole remaining quota, and those of other clients are unaffected', async () => {
    const [short, other] = [await cloud.newClient(), await cloud.newClient()];
    await limit(short, { volume_snapshots_size_limit: 11 });
    const [limited, others] = [await policies(short, 9), await policies(other, 4)];
    cloud.clock.advance(3600);
    await startAndRequest(deps());
    await requestPending();
    expect(await stateOf(others)).toEqual(all(4, 'running'));
    expect((await stateOf(limited)).toSorted()).toEqual([...all(4, 'failed'), ...all(5, 'running')]);
    for (const { state, message } of await states(limited)) {
      if (state === 'failed') expect(message).toContain('volume_snapshots_size');
    }
    const [{ done }] = await sql(`select count(*)::int as done from lifecycle_policy_runs where done_at is not null`);
    expect(done).toBe(4);
  });

  it('are requested again if the quota has got room since it refused', async () => {
    const client = await cloud.newClient();
    await limit(client, { volume_snapshots_count_limit: 0 });
    const volumes = await policies(client, 1);
    cloud.clock.advance(3600);
    await startAndRequest(deps());
    // It waited for the deletion of its oldest snapshot, and another volume used that room.
    await sql(`update lifecycle_policy_run_volumes set message = 'quota exceeded' where volume_id = $1`, volumes[0]);
    const { snapshots } = cloud.services;
    const ofSchedule: typeof snapshots.ofSchedule = async (...given) => {
      await limit(client, { volume_snapshots_count_limit: 1 });
      return snapshots.ofSchedule(...given);
    };
    await requestPending({ snapshots: { ...snapshots, ofSchedule } });
    expect(await stateOf(volumes)).toEqual(['pending']);
    await requestPending();
    expect(await stateOf(volumes)).toEqual(['running']);
  });

  it('are requested although the volume of one is being deleted', async () => {
    const client = await cloud.newClient();
    const volumes = await policies(client, 5);
    cloud.clock.advance(3600);
    await startDueRuns(deps());
    const deleted = await cloud.delete(`/cloud/v1/volumes/${client.projectId}/1/${volumes[2]}`, client);
    expect(deleted.status).toBe(200);
    await requestPending();
    expect(await stateOf(volumes)).toEqual(['running', 'running', 'failed', 'running', 'running']);
    expect((await states([volumes[2]!]))[0]!.message).toContain('is in status deleting');
  });

  it('are requested although one volume is locked, which gets its snapshot when the lock is released', async () => {
    const volumes = await policies(await cloud.newClient(), 5);
    cloud.clock.advance(3600);
    await startDueRuns(deps());
    const holder = await cloud.db.$client.connect();
    await holder.query('begin');
    await holder.query('select from volumes where id = $1 for update', [volumes[3]]);
    await expect(requestPending()).rejects.toThrow(/lock timeout/);
    expect(await stateOf(volumes)).toEqual(['running', 'running', 'running', 'pending', 'running']);
    await holder.query('rollback');
    holder.release();
    await requestPending();
    expect(await stateOf(volumes)).toEqual(all(5, 'running'));
  }, 30_000);

  it('start in turns of the clients', async () => {
    const [many, one] = [await cloud.newClient(), await cloud.newClient()];
    const volumes = await policies(many, 5);
    cloud.clock.advance(1);
    const [other] = await policies(one, 1);
    cloud.clock.advance(3600);
    const started = await startDueRuns(deps());
    const rows = await sql('select id, volume_id from lifecycle_policy_run_volumes where id = any($1)', started);
    const order = started.map((id) => rows.find((row) => row.id === id).volume_id);
    expect(order).toHaveLength(6);
    expect(order.indexOf(other)).toBeLessThan(2);
    expect(new Set(order)).toEqual(new Set([other, ...volumes]));
  });

  it('are requested for each client in turn, however many the quota of another one refuses', async () => {
    const [full, other] = [await cloud.newClient(), await cloud.newClient()];
    await limit(full, { volume_snapshots_count_limit: 0 });
    const [[refused], [volume]] = [await policies(full, 1), await policies(other, 1)];
    cloud.clock.advance(3600);
    await startDueRuns(deps());
    const runs = 60;
    // As of earlier instants of the schedule. Their ids come before that of the other client's run.
    await sql(
      `with more as (
         insert into lifecycle_policy_runs (id, policy_id, region_id, schedule_id, scheduled_at, started_at)
         select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, r.policy_id, r.region_id, r.schedule_id,
           r.scheduled_at - n * interval '1 minute', r.started_at
         from generate_series(1, ${runs}) as n, lifecycle_policy_runs r
           join lifecycle_policy_run_volumes v on v.run_id = r.id where v.volume_id = $1
         returning id, region_id)
       insert into lifecycle_policy_run_volumes (id, run_id, region_id, volume_id, name, state)
       select gen_random_uuid(), id, region_id, $1, 'data', 'pending' from more`,
      refused,
    );
    const { snapshots } = cloud.services;
    let calls = 0;
    let callsBefore = Number.NaN;
    const createForRuns: typeof snapshots.createForRuns = async (tx, given) => {
      calls += 1;
      const made = await snapshots.createForRuns(tx, given);
      if (given.some(({ volumeId }) => volumeId === volume)) callsBefore = calls;
      return made;
    };
    await requestPending({ snapshots: { ...snapshots, createForRuns } });
    expect(await stateOf([volume!])).toEqual(['running']);
    expect(callsBefore).toBeLessThan(30);
  }, 60_000);
});
