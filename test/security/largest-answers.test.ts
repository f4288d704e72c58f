/** The largest responses for a client with full quotas stay within the bounds of request-cost.test.ts. */
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { problemOf, useMeasuredCloud } from './measured-cloud.ts';

const { cloud, send, measure } = useMeasuredCloud();

let owner: { clientId: number; projectId: number; token: string };
let at: string;

/** Inserts copies of a row. `changes` is an SQL object of changed columns; `i` is the number of the copy. */
const copy = (table: string, id: string, count: number, changes: string) =>
  cloud.db.$client.query(
    `insert into ${table} select r.* from ${table} t, generate_series(1, ${count}) i,
       lateral jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'copy', i) || jsonb_build_object(${changes})) r
     where t.id = $1`,
    [id],
  );

const sql = async (text: string, values: unknown[] = []) => (await cloud.db.$client.query(text, values)).rows;

/** Paths whose responses exceed a bound, each with the reason. */
async function problemsOf(paths: string[]): Promise<string[]> {
  const problems: string[] = [];
  for (const path of paths) {
    const measured = await measure(async () => [await send('GET', path, undefined, owner.token)]);
    const problem = problemOf(measured);
    if (problem) problems.push(`${path} ${problem}`);
    expect([path, measured.received[0]!.status]).toEqual([path, 200]);
  }
  return problems;
}

beforeAll(async () => {
  owner = await cloud.newClient('admin');
  at = `${owner.projectId}/1`;
});

describe('these responses do not block the event loop', () => {
  it('load balancers with 5,100 listeners, and 50 pools of 1,000 members', { timeout: 600_000 }, async () => {
    const members = Array.from({ length: 1000 }, (_, i) => ({
      address: `10.${Math.floor(i / 250)}.0.${1 + (i % 250)}`,
      protocol_port: 80,
      weight: 5,
    }));
    const pools = [{ name: 'pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', members }];
    const listeners = [{ name: 'listener', protocol: 'TCP', protocol_port: 1, pools }];
    const given = { name: 'balancer', flavor: 'lb1-1-2', listeners };
    const created = await cloud.post(`/cloud/v1/loadbalancers/${at}`, given, owner);
    const resources = (await cloud.ended(created, owner)).body.created_resources;
    const [balancer, listener, pool] = [resources.loadbalancers[0], resources.listeners[0], resources.pools[0]];
    await sql(`update tasks set created_resources = $1 where client_id = $2`, [resources, owner.clientId]);
    const [task] = await sql(`select id from tasks where client_id = $1`, [owner.clientId]);
    await copy('tasks', task!.id, 999, `'state', case when i % 2 = 0 then 'NEW' else 'FINISHED' end`);
    await copy('lb_pools', pool, 49, `'name', 'pool ' || i`);
    await sql(
      `insert into lb_members select r.* from lb_members t, lb_pools p, lateral jsonb_populate_record(t,
         jsonb_build_object('id', gen_random_uuid(), 'pool_id', p.id)) r where t.pool_id = $1 and p.id <> $1`,
      [pool],
    );
    const many = `'sni_secret_ids', array(select gen_random_uuid() from generate_series(1, 100)),
      'allowed_cidrs', (select jsonb_agg('10.0.0.' || n || '/32') from generate_series(1, 100) n)`;
    await copy('lb_listeners', listener, 1000, `'protocol_port', 1 + i, 'default_pool_id', null, ${many}`);
    await sql(
      `update lb_listeners l set default_pool_id = p.id from
         (select id, row_number() over () as n from lb_pools where load_balancer_id = $1) p
       where l.protocol_port = p.n and l.load_balancer_id = $1`,
      [balancer],
    );
    await copy('load_balancers', balancer, 99, `'vip_address', '10.99.1.' || i`);
    await sql(
      `insert into lb_listeners select r.* from lb_listeners t, load_balancers b, generate_series(2, 52) port,
         lateral jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'load_balancer_id', b.id,
           'protocol_port', port, 'default_pool_id', null)) r
       where t.id = $1 and b.id <> $2 and b.client_id = $3`,
      [listener, balancer, owner.clientId],
    );
    const v1 = '/cloud/v1';
    expect(
      await problemsOf([
        `${v1}/lbpools/${at}?details=true&limit=1000`,
        `${v1}/lbpools/${at}?limit=1000`,
        `${v1}/lbpools/${at}/${pool}`,
        `${v1}/loadbalancers/${at}/status`,
        `${v1}/loadbalancers/${at}/${balancer}/status`,
        `${v1}/loadbalancers/${at}?show_stats=true`,
        `${v1}/loadbalancers/${at}/${balancer}`,
        `${v1}/lblisteners/${at}?limit=1000&show_stats=true`,
        `${v1}/tasks?limit=1000`,
        `${v1}/tasks/${at}/active?limit=1000`,
      ]),
    ).toEqual([]);
    const body = async (path: string) => (await cloud.get(`${v1}/${path}`, owner)).body;
    const membersIn = (pools: { members: unknown[] }[]) => pools.map((one) => one.members.length);
    const all = (await body(`lbpools/${at}?details=true`)) as { count: number; results: { members: unknown[] }[] };
    expect([all.count, membersIn(all.results)]).toEqual([50, Array.from({ length: 50 }, () => 1000)]);
    let status = await body(`loadbalancers/${at}/${balancer}/status`);
    // The worker still records the statuses of the copies on a slow machine.
    const read = async () => {
      const { count, results } = await body(`loadbalancers/${at}/status`);
      status = await body(`loadbalancers/${at}/${balancer}/status`);
      const listed = results.find(({ id }: { id: string }) => id === balancer);
      return [count, results.length, isDeepStrictEqual(listed, status)];
    };
    await expect.poll(read, { timeout: 60_000 }).toEqual([100, 100, true]);
    expect(status.listeners).toHaveLength(1001);
    expect(membersIn(status.listeners.flatMap(({ pools }: { pools: [] }) => pools))).toEqual(membersIn(all.results));
    expect((await body(`lblisteners/${at}?limit=1000&offset=5500`)).results).toHaveLength(550);
  });

  it('20 lifecycle policies of 10,000 volumes', { timeout: 600_000 }, async () => {
    await sql(
      `insert into volumes (id, project_id, region_id, client_id, name, type_name, size, status, tags, creator_task_id, created_at, updated_at, generation, observed_generation)
       select gen_random_uuid(), $1, 1, $2, 'volume ' || i, 'standard', 1, 'available', '{}', gen_random_uuid(), now(), now(), 1, 1
       from generate_series(1, 10000) i`,
      [owner.projectId, owner.clientId],
    );
    await sql(
      `insert into lifecycle_policies (client_id, project_id, region_id, name, action, status, user_id, created_at)
       select $2, $1, 1, 'policy ' || i, 'volume_snapshot', 'active', 1, now() from generate_series(1, 20) i`,
      [owner.projectId, owner.clientId],
    );
    await sql(
      `insert into lifecycle_policy_volumes select p.id, v.id from lifecycle_policies p, volumes v where p.client_id = $1`,
      [owner.clientId],
    );
    const [policy] = await sql(`select id from lifecycle_policies where client_id = $1 limit 1`, [owner.clientId]);
    const path = `/cloud/v1/lifecycle_policy/${at}`;
    await sql(
      `insert into lifecycle_policy_runs (id, policy_id, region_id, schedule_id, scheduled_at, started_at)
       select gen_random_uuid(), $1, 1, gen_random_uuid(), now(), now() from generate_series(1, 20)`,
      [policy!.id],
    );
    await sql(
      `insert into lifecycle_policy_run_volumes (id, run_id, region_id, volume_id, name, state, message)
       select gen_random_uuid(), r.id, 1, v.id, 'snapshot', 'failed', repeat('x', 100)
       from lifecycle_policy_runs r, volumes v where r.policy_id = $1 and v.client_id = $2`,
      [policy!.id, owner.clientId],
    );
    expect(
      await problemsOf([
        `${path}?need_volumes=true&limit=1000`,
        `${path}/${policy!.id}?need_volumes=true`,
        `${path}/${policy!.id}/runs?limit=1000`,
        `/cloud/v1/volumes/${at}?limit=1000`,
      ]),
    ).toEqual([]);
  });

  it('a registry repository of 5,000 artifacts with two tags each', { timeout: 600_000 }, async () => {
    const at = `/cloud/v1/registries/${owner.projectId}/1`;
    const { id } = (await cloud.post(at, { name: 'registry', storage_limit: 1 }, owner)).body;
    const [repository] = await sql(
      `insert into registry_repositories (registry_id, name, created_at, updated_at, seen_at)
       values ($1, 'images', now(), now(), now()) returning id`,
      [id],
    );
    await sql(
      `insert into registry_artifacts (repository_id, digest, size, pushed_at, seen_at)
       select $1, 'sha256:' || lpad(i::text, 64, '0'), 1, now(), now() from generate_series(1, 5000) i`,
      [repository!.id],
    );
    await sql(
      `insert into registry_tags (repository_id, artifact_id, name, pushed_at, seen_at)
       select a.repository_id, a.id, 'tag-' || a.id || '-' || i, now(), now()
       from registry_artifacts a, generate_series(1, 2) i where a.repository_id = $1`,
      [repository!.id],
    );
    const path = `${at}/${id}/repositories/images/artifacts`;
    expect(await problemsOf([path])).toEqual([]);
    const { count, results } = (await cloud.get(`${path}?offset=4000`, owner)).body;
    expect([count, results.length, results[999].tags.length]).toEqual([5000, 1000, 2]);
  });
});
