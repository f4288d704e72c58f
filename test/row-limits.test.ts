/** Limits of rows that no quota counts, so that no client fills the database (`limitRows` in resources/row-limits.ts). */
import { describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from './harness.ts';

// The test writes rows directly.
const cloud = useCloudyard({ audit: false });

/** Copies a row `many` times. `changes`: SQL of a JSON object, in which `n` is the number of the copy. */
const copy = (table: string, id: string | number, many: number, changes: string) =>
  cloud.db.$client.query(
    `insert into ${table} overriding system value select r.* from ${table} t, generate_series(1, $2::int) n,
     lateral jsonb_populate_record(t, ${changes}) r where t.id::text = $1`,
    [String(id), many],
  );
const outcome = ({ status, body }: Answer) => [status, body.message];
const refused = (message: string) => [409, message];

describe('a client', () => {
  it('has at most 1,000 valid tokens', async () => {
    const { token } = await cloud.newClient();
    const tokens = '/cloudyard/v1/tokens';
    const create = () => cloud.post(tokens, { name: 'one more', role: 'reader' }, { token });
    const { id } = (await create()).body;
    await copy('tokens', id, 997, `jsonb_build_object('id', 1000000 + n, 'key_id', 'copy-' || n)`);
    expect((await create()).status).toBe(201);
    expect(outcome(await create())).toEqual(refused('a client can have at most 1000 valid tokens'));
    await cloud.delete(`${tokens}/${id}`, { token });
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
  });

  it('may create tokens again when others have expired, by the clock of development mode', async () => {
    const { token } = await cloud.newClient();
    const hour = 3_600_000;
    const expires_at = new Date(Date.now() + hour).toISOString();
    const create = (changes = {}) =>
      cloud.post('/cloudyard/v1/tokens', { name: 'one more', role: 'reader', ...changes }, { token });
    const { id } = (await create({ expires_at })).body;
    await copy('tokens', id, 998, `jsonb_build_object('id', 2000000 + n, 'key_id', 'expiring-' || n)`);
    expect((await create()).status).toBe(409);
    cloud.clock.set(new Date(Date.now() + 2 * hour));
    expect((await create()).status).toBe(201);
    cloud.clock.set(null);
  });
});

describe('a project', () => {
  const login = { registry: 'registry.example.com', login: 'me', password: 'pass' };
  it.each([
    ['API keys', 'caas/keys', 'api_keys', 10_000, { containers: [] }],
    ['pull secrets', 'caas/secrets', 'pull_secrets', 1000, login],
    ['lifecycle policies', 'lifecycle_policy', 'lifecycle_policies', 1000, { action: 'volume_snapshot' }],
  ])('has a limit of %s', async (name, kind, table, most, body) => {
    const { projectId, token } = await cloud.newClient();
    let made = 0;
    const create = () => cloud.post(`/cloud/v1/${kind}/${projectId}/1`, { name: `made-${made++}`, ...body }, { token });
    expect((await create()).status).toBe(200);
    const { rows } = await cloud.db.$client.query(`select id from ${table} where project_id = $1`, [projectId]);
    const id = table === 'lifecycle_policies' ? '1000000 + n' : 'gen_random_uuid()';
    const key = table === 'api_keys' ? `, 'key_id', 'key-' || n` : '';
    await copy(table, rows[0].id, most - 2, `jsonb_build_object('id', ${id}, 'name', 'copy-' || n${key})`);
    expect((await create()).status).toBe(200);
    expect(outcome(await create())).toEqual(refused(`a project can have at most ${most} ${name}`));
  });
});

describe('a load balancer', () => {
  const pool = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
  const member = (n: number) => ({ address: `10.9.0.${n}`, protocol_port: 80 });

  it('has at most 200 listeners, 200 pools and 10,000 members', async () => {
    const post = (path: string, body: object) => cloud.post(`/cloud/v1/${path}`, body);
    const finished = async (answer: Answer) => (await cloud.ended(answer)).body.created_resources;
    const listener = {
      name: 'a listener',
      protocol: 'HTTP',
      protocol_port: 80,
      pools: [{ ...pool, members: [member(1)] }],
    };
    const made = await finished(await post('loadbalancers/1/1', { name: 'full', listeners: [listener] }));
    const load_balancer_id = made.loadbalancers[0];
    const newListener = (protocol_port: number) =>
      post('lblisteners/1/1', { name: 'a listener', protocol: 'HTTP', protocol_port, load_balancer_id });
    const newPool = (members: object[] = []) => post('lbpools/1/1', { ...pool, load_balancer_id, members });

    await copy(
      'lb_listeners',
      made.listeners[0],
      198,
      `jsonb_build_object('id', gen_random_uuid(), 'protocol_port', 1000 + n, 'default_pool_id', null)`,
    );
    await finished(await newListener(81));
    expect(outcome(await newListener(82))).toEqual(refused('a load balancer can have at most 200 listeners'));

    await copy('lb_pools', made.pools[0], 197, `jsonb_build_object('id', gen_random_uuid(), 'name', 'pool-' || n)`);
    await cloud.db.$client.query(
      `insert into lb_members select r.* from lb_members t,
       lateral (select id from lb_pools where load_balancer_id = $2 and id <> t.pool_id limit 10) p, generate_series(1, 1000) n,
       lateral jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'pool_id', p.id, 'protocol_port', n)) r
       where t.pool_id = $1 limit 9996`,
      [made.pools[0], load_balancer_id],
    );
    const tooMany = refused('a load balancer can have at most 10000 members');
    const [second] = (await finished(await newPool([member(1)]))).pools;
    expect(outcome(await newPool([member(1), member(2), member(3)]))).toEqual(tooMany);
    await finished(await newPool());
    expect(outcome(await newPool())).toEqual(refused('a load balancer can have at most 200 pools'));
    const members = `loadbalancers/1/1/pools/${second}/members`;
    await finished(await post(members, member(2)));
    await finished(await post(members, member(3)));
    expect(outcome(await post(members, member(4)))).toEqual(tooMany);
    const replace = (...list: object[]) => cloud.patch(`/cloud/v2/lbpools/1/1/${second}`, { members: list });
    expect(outcome(await replace(member(1), member(2), member(3), member(4)))).toEqual(tooMany);
    await finished(await replace(member(4), member(5), member(6)));
  });
});
