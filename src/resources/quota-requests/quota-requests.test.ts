/** Quota requests through the API: what clients ask for, what the operator decides, and who sees what. */
import { beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({
  driver: null,
  configuration: (shipped) => ({
    ...shipped,
    regions: [shipped.regions[0]!, { ...shipped.regions[0]!, id: 2, name: 'second', vip_range: undefined as never }],
  }),
});
const path = '/cloud/v2/limits_request';
const decisions = '/cloudyard/v1/limits_requests';

let client: Awaited<ReturnType<typeof cloud.newClient>>;
beforeEach(async () => {
  client = await cloud.newClient();
});

const ask = (requested_limits: object, options: object = client) =>
  cloud.post(path, { description: 'We grow.', requested_limits }, options);
const results = async (query = '', options: object = client) => (await cloud.get(path + query, options)).body.results;

/** Requests limits and returns the id. */
async function newRequest(requested: object = { regional_limits: [{ region_id: 1, volume_count_limit: 500 }] }) {
  expect(await ask(requested)).toMatchObject({ status: 201, body: '' });
  return (await results())[0].id as number;
}

const limitOf = async (kind: string, regionId = 1) =>
  (await cloud.get(`/cloud/v2/regional_quotas/${client.clientId}/${regionId}`, client)).body[`${kind}_limit`];
const globalLimitOf = async (kind: string) =>
  (await cloud.get(`/cloud/v2/global_quotas/${client.clientId}`, client)).body[`${kind}_limit`];
const notifications = async () =>
  (await cloud.get(`/cloudyard/v1/clients/${client.clientId}/notifications`, client)).body.results;
const approve = (id: number, body: object = {}) => cloud.post(`${decisions}/${id}/approve`, body);
const decline = (id: number, reason = 'No space.') => cloud.post(`${decisions}/${id}/decline`, { reason });

describe('a quota request', () => {
  it('is listed in the official shape until it is decided', async () => {
    const requested = {
      global_limits: { project_count_limit: 50 },
      regional_limits: [
        { region_id: 2, sfs_size_limit: 9000, slurm_cluster_count_limit: 0 },
        { region_id: 1, volume_count_limit: 500, volume_size_limit: 70_000 },
      ],
    };
    const id = await newRequest(requested);
    expect(await cloud.get(`${path}/${id}`, client)).toMatchObject({
      status: 200,
      body: {
        id,
        client_id: client.clientId,
        description: 'We grow.',
        requested_limits: requested,
        status: 'in progress',
        reason: null,
        created_at: expect.stringMatching(/Z$/),
        updated_at: null,
      },
    });
    expect(await limitOf('volume_count')).not.toBe(500);
  });

  it('changes exactly the requested limits when it is approved, and the client is notified', async () => {
    await cloud.request('PATCH', `/cloudyard/v1/clients/${client.clientId}`, { emails: ['ops@example.org'] }, client);
    const before = await limitOf('volume_size');
    const id = await newRequest({
      global_limits: { project_count_limit: 50 },
      regional_limits: [
        { region_id: 1, volume_count_limit: 500 },
        { region_id: 2, sfs_size_limit: 9000 },
      ],
    });
    expect(await approve(id)).toMatchObject({ status: 200, body: { id, status: 'done', reason: null } });
    expect(await limitOf('volume_count')).toBe(500);
    expect(await limitOf('sfs_size', 2)).toBe(9000);
    expect(await globalLimitOf('project_count')).toBe(50);
    expect(await limitOf('volume_size')).toBe(before);
    expect((await results('?status=done'))[0].updated_at).toMatch(/Z$/);
    const [message] = await notifications();
    expect(message).toMatchObject({
      type: 'quota_request_approved',
      subject: `Quota request ${id} was approved`,
      data: { request_id: id, status: 'done', reason: null },
      deliveries: [{ channel: 'email', target: 'ops@example.org' }],
    });
    const { rows } = await cloud.db.$client.query(
      `select client_id, changes from audit_entries where operation = 'approveQuotaRequest' and client_id = $1`,
      [client.clientId],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0].changes.map(({ table }: { table: string }) => table)).toEqual(
      expect.arrayContaining(['quota_requests', 'quota_counters', 'notifications', 'notification_deliveries']),
    );
  });

  it('changes no limit when it is declined, and the client reads the reason', async () => {
    const before = await limitOf('volume_count');
    const id = await newRequest();
    expect(await decline(id, 'No space.')).toMatchObject({ body: { status: 'rejected', reason: 'No space.' } });
    expect(await limitOf('volume_count')).toBe(before);
    expect((await notifications())[0]).toMatchObject({
      type: 'quota_request_declined',
      data: { request_id: id, status: 'rejected', reason: 'No space.' },
    });
  });

  it('is decided once, however many decisions arrive at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const id = await newRequest({ regional_limits: [{ region_id: 1, volume_count_limit: 600 + round }] });
      const withdraw = () => cloud.delete(`${path}/${id}`, client);
      const answers = await Promise.all([approve(id), decline(id), approve(id), withdraw()]);
      const won = answers.filter(({ status }) => status < 300);
      expect(won).toHaveLength(1);
      const state = (await cloud.get(`${path}/${id}`, client)).body.status;
      const expected =
        answers.indexOf(won[0]!) === 3 ? undefined : answers.indexOf(won[0]!) === 1 ? 'rejected' : 'done';
      expect(state).toBe(expected);
      expect((await limitOf('volume_count')) === 600 + round).toBe(expected === 'done');
      const about = (await notifications()).filter(
        ({ data }: { data: { request_id: number } }) => data.request_id === id,
      );
      expect(about).toHaveLength(expected === undefined ? 0 : 1);
    }
  });

  it('can be deleted while it is in progress, but not after the decision', async () => {
    const open = await newRequest();
    expect((await cloud.delete(`${path}/${open}`, client)).status).toBe(204);
    expect((await cloud.get(`${path}/${open}`, client)).status).toBe(404);
    const id = await newRequest();
    await decline(id);
    expect(await cloud.delete(`${path}/${id}`, client)).toMatchObject({
      status: 409,
      body: { exception_class: 'Conflict', message: `quota request ${id} was already declined` },
      headers: { 'x-should-retry': 'false' },
    });
    expect(await approve(id)).toMatchObject({ status: 409 });
  });

  it('is not approved if more is in use by now than was requested', async () => {
    const id = await newRequest({ regional_limits: [{ region_id: 1, network_count_limit: 1 }] });
    await cloud.post(`/cloud/v1/networks/${client.projectId}/1`, { name: 'another' }, client);
    expect(await approve(id)).toMatchObject({
      status: 409,
      body: {
        errors: [
          {
            path: 'requested_limits.regional_limits.0.network_count_limit',
            message: 'must be at least the current usage (2)',
          },
        ],
      },
    });
    expect((await results())[0].status).toBe('in progress');
    expect(await notifications()).toEqual([]);
  });

  it('is created once under an Idempotency-Key', async () => {
    const options = { ...client, headers: { 'idempotency-key': 'once' } };
    const limits = { global_limits: { project_count_limit: 7 } };
    expect((await ask(limits, options)).status).toBe(201);
    expect((await ask(limits, options)).status).toBe(201);
    expect(await results()).toHaveLength(1);
  });

  it('may name its client, as older official SDKs do', async () => {
    const body = { description: 'We grow.', requested_limits: { global_limits: { project_count_limit: 7 } } };
    const other = await cloud.post(path, { ...body, client_id: client.clientId + 1 }, client);
    expect(other).toMatchObject({ status: 400, body: { errors: [{ path: 'client_id' }] } });
    expect((await cloud.post(path, { ...body, client_id: client.clientId }, client)).status).toBe(201);
  });
});

describe('an invalid quota request is refused with every error', () => {
  const requested = 'requested_limits';
  it.each<[string, object, string[]]>([
    ['nothing', {}, [requested]],
    ['empty lists', { global_limits: {}, regional_limits: [] }, [requested]],
    ['a region without limits', { regional_limits: [{ region_id: 1 }] }, [`${requested}.regional_limits.0`]],
    [
      'only a limit that no quota has',
      { regional_limits: [{ region_id: 1, baremetal_gpu_count_limit: 5 }] },
      [`${requested}.regional_limits.0`],
    ],
    [
      'zero of what is in use',
      { global_limits: { project_count_limit: 0 } },
      [`${requested}.global_limits.project_count_limit`],
    ],
    [
      'a negative limit',
      { regional_limits: [{ region_id: 1, ram_limit: -1 }] },
      [`${requested}.regional_limits.0.ram_limit`],
    ],
    [
      'more than a counter holds',
      { global_limits: { keypair_count_limit: 2 ** 53 } },
      [`${requested}.global_limits.keypair_count_limit`],
    ],
    [
      'less than is in use',
      { global_limits: { project_count_limit: 1 }, regional_limits: [{ region_id: 1, network_count_limit: 1 }] },
      [`${requested}.global_limits.project_count_limit`, `${requested}.regional_limits.0.network_count_limit`],
    ],
    ['an unknown kind', { global_limits: { unicorn_limit: 3 } }, [`${requested}.global_limits.unicorn_limit`]],
    [
      'a regional kind as a global one',
      { global_limits: { volume_count_limit: 3 } },
      [`${requested}.global_limits.volume_count_limit`],
    ],
    [
      'a global kind as a regional one',
      { regional_limits: [{ region_id: 1, project_count_limit: 3 }] },
      [`${requested}.regional_limits.0.project_count_limit`],
    ],
    ['no region', { regional_limits: [{ ram_limit: 3 }] }, [`${requested}.regional_limits.0.region_id`]],
    [
      'an unknown region, and one twice',
      {
        regional_limits: [
          { region_id: 77, ram_limit: 3 },
          { region_id: 1, ram_limit: 3 },
          { region_id: 1, ram_limit: 4 },
        ],
      },
      [`${requested}.regional_limits.0.region_id`, `${requested}.regional_limits.2.region_id`],
    ],
  ])('%s', async (_name, limits, paths) => {
    await cloud.post('/cloud/v1/projects', { name: 'second' }, client);
    await cloud.post(`/cloud/v1/networks/${client.projectId}/1`, { name: 'another' }, client);
    const answer = await ask(limits);
    expect(answer.status).toBe(400);
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual(paths);
    expect(await results()).toEqual([]);
  });

  it.each([
    [{ requested_limits: { global_limits: { project_count_limit: 9 } } }],
    [{ description: 'x'.repeat(1001), requested_limits: { global_limits: { project_count_limit: 9 } } }],
    [{ description: null, requested_limits: null }],
    [{}],
  ])('%j', async (body) => {
    expect((await cloud.post(path, body, client)).status).toBe(400);
    expect(await results()).toEqual([]);
  });

  it('a decline without a reason', async () => {
    const id = await newRequest();
    expect((await cloud.post(`${decisions}/${id}/decline`, {})).status).toBe(400);
    expect((await cloud.post(`${decisions}/${id}/decline`, { reason: '' })).status).toBe(400);
    expect((await results())[0].status).toBe('in progress');
  });

  it('the hundred and first open request of a client', async () => {
    for (let i = 0; i < 100; i++) await newRequest();
    expect(await ask({ global_limits: { project_count_limit: 99 } })).toMatchObject({ status: 409 });
    const [{ id }] = await results('?limit=1');
    await cloud.delete(`${path}/${id}`, client);
    expect((await ask({ global_limits: { project_count_limit: 99 } })).status).toBe(201);
  });
});

describe('the list of quota requests', () => {
  it('has the newest first, and filters by id, status and date', async () => {
    cloud.clock.set(new Date('2026-05-01T10:00:00Z'));
    const first = await newRequest();
    cloud.clock.set(new Date('2026-05-02T10:00:00.4Z'));
    const second = await newRequest();
    cloud.clock.set(new Date('2026-05-03T10:00:00Z'));
    const third = await newRequest();
    cloud.clock.set(null);
    await decline(second);
    const ids = async (query: string) => (await results(query)).map(({ id }: { id: number }) => id);
    expect(await ids('')).toEqual([third, second, first]);
    expect(await ids('?status=rejected')).toEqual([second]);
    expect(await ids('?status=in%20progress&status=done')).toEqual([third, first]);
    expect(await ids(`?request_ids=${first}&request_ids=${second}`)).toEqual([second, first]);
    expect(await ids('?request_ids=2147483648')).toEqual([]);
    expect(await ids('?created_from=2026-05-02T10:00:00Z')).toEqual([third, second]);
    expect(await ids('?created_to=2026-05-02T10:00:00Z')).toEqual([second, first]);
    expect((await cloud.get(`${path}?limit=1&offset=1`, client)).body).toMatchObject({
      count: 3,
      results: [{ id: second }],
    });
    for (const bad of ['status=lost', 'created_from=soon', 'limit=0', 'request_ids=x']) {
      expect((await cloud.get(`${path}?${bad}`, client)).status).toBe(400);
    }
  });

  it('shows a client its own requests, and the operator those of all clients', async () => {
    const id = await newRequest();
    const other = await cloud.newClient();
    expect(await results('', other)).toEqual([]);
    expect((await cloud.get(`${path}/${id}`, other)).status).toBe(404);
    expect((await cloud.delete(`${path}/${id}`, other)).status).toBe(404);
    expect((await cloud.get(`${path}/${id}`)).body).toMatchObject({ client_id: client.clientId });
    expect((await results(`?request_ids=${id}`, {})).map((one: { id: number }) => one.id)).toEqual([id]);
    const operatorReader = await cloud.newToken(1, 'reader');
    expect((await cloud.get(`${path}/${id}`, { token: operatorReader })).status).toBe(404);
  });

  it('lets readers read, members ask, and only the operator decide', async () => {
    const id = await newRequest();
    const reader = { token: await cloud.newToken(client.clientId, 'reader') };
    expect((await cloud.get(`${path}/${id}`, reader)).status).toBe(200);
    expect((await ask({ global_limits: { project_count_limit: 9 } }, reader)).status).toBe(403);
    const member = { token: await cloud.newToken(client.clientId, 'member') };
    expect((await ask({ global_limits: { project_count_limit: 9 } }, member)).status).toBe(201);
    const limited = { token: await cloud.newToken(client.clientId, 'member', [client.projectId]) };
    expect((await ask({ global_limits: { project_count_limit: 9 } }, limited)).status).toBe(403);
    expect((await cloud.delete(`${path}/${id}`, limited)).status).toBe(403);
    expect((await cloud.post(`${decisions}/${id}/approve`, {}, client)).status).toBe(403);
    expect((await cloud.post(`${decisions}/${id}/decline`, { reason: 'mine' }, client)).status).toBe(403);
    expect((await cloud.post(`${decisions}/999999/approve`, {})).status).toBe(404);
  });
});
