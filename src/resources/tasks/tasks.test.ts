import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { createTestHost, terminal } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';

const host = createTestHost();
const cloud = useCloudyard({ driver: host });
const unknownId = '11111111-1111-4111-8111-111111111111';
const soon = { timeout: 30_000, interval: 20 };

interface Tenant {
  clientId: number;
  projectId: number;
  token: string;
  other: number;
}

/** A client with two projects. */
async function tenant(): Promise<Tenant> {
  const client = await cloud.newClient();
  const { body } = await cloud.post('/cloud/v1/projects', { name: 'other' }, { token: client.token });
  return { ...client, other: body.id };
}

async function createShare({ projectId, token }: Tenant, project = projectId): Promise<string> {
  const networks = `/cloud/v1/networks/${project}/1`;
  let [network] = (await cloud.get(networks, { token })).body.results;
  if (!network) {
    await cloud.post(networks, { name: 'a network' }, { token });
    [network] = (await cloud.get(networks, { token })).body.results;
    await cloud.post(
      `/cloud/v1/subnets/${project}/1`,
      { name: 'a subnet', network_id: network.id, cidr: '10.0.0.0/24' },
      { token },
    );
  }
  const body = { name: 'a share', protocol: 'NFS', size: 1, network: { network_id: network.id } };
  const answer = await cloud.post(`/cloud/v1/file_shares/${project}/1`, body, { token });
  return answer.body.tasks[0];
}

const wait = (id: string, token: string) => cloud.get(`/cloud/v1/tasks/${id}?wait=20`, { token });

async function finished(of: Tenant, project = of.projectId): Promise<string> {
  const id = await createShare(of, project);
  expect((await wait(id, of.token)).body.state).toBe('FINISHED');
  return id;
}

describe('a task', () => {
  it('has every field, identical on both paths', async () => {
    const of = await tenant();
    const created = await cloud.get(`/cloud/v1/tasks/${await finished(of)}`, { token: of.token });
    const { body } = created;
    const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
    expect(body).toEqual({
      id: body.id,
      state: 'FINISHED',
      task_type: 'create_sfs',
      resource_kind: 'file_share',
      resource_id: body.created_resources.file_shares[0],
      error: null,
      created_resources: { file_shares: [expect.stringMatching(/^[0-9a-f-]{36}$/)] },
      data: { file_share_id: body.resource_id },
      detailed_state: 'FINISHED',
      created_on: date,
      updated_on: date,
      finished_on: date,
      acknowledged_at: null,
      acknowledged_by: null,
      client_id: of.clientId,
      user_client_id: of.clientId,
      user_id: expect.any(Number),
      project_id: of.projectId,
      region_id: 1,
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      job_id: null,
      lifecycle_policy_id: null,
      schedule_id: null,
    });
    expect((await cloud.get(`/v1/tasks/${body.id}`, { token: of.token })).body).toEqual(body);
  });

  it('is listed by its resource, for its client only', async () => {
    const of = await tenant();
    const [first, second] = [await finished(of), await finished(of)];
    const { resource_id: id } = (await cloud.get(`/cloud/v1/tasks/${first}`, { token: of.token })).body;
    await wait(
      (await cloud.delete(`/cloud/v1/file_shares/${of.projectId}/1/${id}`, { token: of.token })).body.tasks[0],
      of.token,
    );
    const list = async (token: string) => (await cloud.get(`/cloud/v1/tasks?resource_id=${id}`, { token })).body;
    const { count, results } = await list(of.token);
    expect(count).toBe(2);
    expect(results.map((task: { task_type: string }) => task.task_type)).toEqual(['delete_sfs', 'create_sfs']);
    expect(results.some((task: { id: string }) => task.id === second)).toBe(false);
    expect(await list((await tenant()).token)).toEqual({ count: 0, results: [] });
    const upper = await cloud.get(`/cloud/v1/tasks?resource_id=${id.toUpperCase()}`, { token: of.token });
    expect(upper.body.count).toBe(2);
  });

  it('is RUNNING until it ends, and has a message in state ERROR', async () => {
    const of = await tenant();
    const release = host.hold();
    const id = await createShare(of);
    const state = async () => (await cloud.get(`/cloud/v1/tasks/${id}`, { token: of.token })).body;
    await expect.poll(async () => (await state()).state, soon).toBe('RUNNING');
    expect(await state()).toMatchObject({ detailed_state: null, finished_on: null, error: null });
    host.trouble(() => ({ error: terminal('no space is left'), done: false }));
    release();
    await expect.poll(async () => (await state()).state, soon).toBe('ERROR');
    host.trouble();
    expect(await state()).toMatchObject({ detailed_state: 'ERROR', error: 'no space is left' });
  });

  it('returns 404 for an unknown id and 400 for an invalid id, on every path', async () => {
    for (const prefix of ['/cloud/v1', '/v1']) {
      expect((await cloud.get(`${prefix}/tasks/${unknownId}`)).status).toBe(404);
      expect((await cloud.get(`${prefix}/tasks/one`)).status).toBe(400);
    }
    expect((await cloud.post(`/cloud/v1/tasks/${unknownId}/acknowledge`)).status).toBe(404);
    expect((await cloud.post('/cloud/v1/tasks/one/acknowledge')).status).toBe(400);
  });

  it('of another client cannot be read, awaited or acknowledged (404)', async () => {
    const of = await tenant();
    const id = await finished(of);
    const { token } = await cloud.newClient();
    for (const path of [`/cloud/v1/tasks/${id}`, `/v1/tasks/${id}`, `/cloud/v1/tasks/${id}?wait=5`]) {
      expect((await cloud.get(path, { token })).status).toBe(404);
    }
    expect((await cloud.post(`/cloud/v1/tasks/${id}/acknowledge`, undefined, { token })).status).toBe(404);
    await cloud.post('/cloud/v1/tasks/acknowledge', { task_ids: [id] }, { token });
    await cloud.post('/cloud/v1/tasks/acknowledge_all', undefined, { token });
    expect((await wait(id, of.token)).body.acknowledged_at).toBe(null);
    expect((await cloud.get('/cloud/v1/tasks', { token })).body).toEqual({ count: 0, results: [] });
  });

  it('is visible to a token limited to its project, not to tokens limited to other projects', async () => {
    const of = await tenant();
    const [id, elsewhere] = [await finished(of), await finished(of, of.other)];
    const limited = await cloud.newToken(of.clientId, 'member', [of.other]);
    expect((await cloud.get(`/cloud/v1/tasks/${elsewhere}`, { token: limited })).status).toBe(200);
    expect((await cloud.get(`/cloud/v1/tasks/${id}`, { token: limited })).status).toBe(404);
    expect((await cloud.post(`/cloud/v1/tasks/${id}/acknowledge`, undefined, { token: limited })).status).toBe(404);
    const list = await cloud.get('/cloud/v1/tasks?limit=1000', { token: limited });
    expect(new Set(list.body.results.map((task: { project_id: number }) => task.project_id))).toEqual(
      new Set([of.other]),
    );
    expect((await cloud.get(`/cloud/v1/tasks/${of.projectId}/1/active`, { token: limited })).status).toBe(403);
    const nowhere = await cloud.newToken(of.clientId, 'member', []);
    expect((await cloud.get('/cloud/v1/tasks', { token: nowhere })).body).toEqual({ count: 0, results: [] });
  });
});

describe('listing tasks', () => {
  let of: Tenant;
  let ids: string[];
  const day = (n: number) => `2026-11-${String(n).padStart(2, '0')}T10:00:00Z`;

  /** Five tasks, a day apart: created on the 1st to the 5th; the 4th in the other project, the 5th an extension. */
  beforeAll(async () => {
    of = await tenant();
    await finished(of, of.other);
    await cloud.db.$client.query('delete from tasks where client_id = $1', [of.clientId]);
    ids = [];
    for (const n of [1, 2, 3, 4]) {
      cloud.clock.set(new Date(day(n)));
      ids.push(await finished(of, n === 4 ? of.other : of.projectId));
    }
    cloud.clock.set(new Date(day(5)));
    const [share] = (await wait(ids[0]!, of.token)).body.created_resources.file_shares;
    const path = `/cloud/v1/file_shares/${of.projectId}/1/${share}/extend`;
    host.trouble(() => ({ error: terminal(), done: false }));
    ids.push((await cloud.post(path, { size: 9 }, { token: of.token })).body.tasks[0]);
    expect((await wait(ids[4]!, of.token)).body.state).toBe('ERROR');
    host.trouble();
    await cloud.post(`/cloud/v1/tasks/${ids[1]}/acknowledge`, undefined, { token: of.token });
    cloud.clock.set(null);
  });

  /** The count, followed by the numbers of the matching tasks in order. */
  const found = async (query: string): Promise<number[]> => {
    const { status, body } = await cloud.get(`/cloud/v1/tasks?${query}`, { token: of.token });
    expect([query, status]).toEqual([query, 200]);
    return [body.count, ...body.results.map((task: { id: string }) => ids.indexOf(task.id) + 1)];
  };

  it('sorts newest first by default, and also accepts the old parameter name', async () => {
    expect(await found('')).toEqual([5, 5, 4, 3, 2, 1]);
    expect(await found('order_by=asc')).toEqual([5, 1, 2, 3, 4, 5]);
    expect(await found('order_by=desc')).toEqual([5, 5, 4, 3, 2, 1]);
    expect(await found('sorting=asc')).toEqual([5, 1, 2, 3, 4, 5]);
    expect(await found('order_by=asc&sorting=desc')).toEqual([5, 1, 2, 3, 4, 5]);
  });

  it('pages, and counts all matching tasks', async () => {
    expect(await found('limit=2')).toEqual([5, 5, 4]);
    expect(await found('limit=2&offset=2')).toEqual([5, 3, 2]);
    expect(await found('limit=2&offset=4')).toEqual([5, 1]);
    expect(await found('offset=5')).toEqual([5]);
    expect(await found('limit=1&state=FINISHED')).toEqual([4, 4]);
  });

  it('returns ten tasks by default', async () => {
    const many = await cloud.newClient();
    const insert = `insert into tasks (id, client_id, user_id, task_type, state, resource, resource_id, generation, created_on, updated_on)
                    select gen_random_uuid(), $1, 1, 'x', 'FINISHED', 'x', 'x', 1, now(), now() from generate_series(1, 12)`;
    await cloud.db.$client.query(insert, [many.clientId]);
    const { body } = await cloud.get('/cloud/v1/tasks', { token: many.token });
    expect([body.count, body.results.length]).toEqual([12, 10]);
    expect((await cloud.get('/cloud/v1/tasks?limit=1000', { token: many.token })).body.results).toHaveLength(12);
  });

  it('filters by time, bounds included, in every accepted format', async () => {
    expect(await found(`from_timestamp=${day(4)}`)).toEqual([2, 5, 4]);
    expect(await found(`to_timestamp=${day(2)}`)).toEqual([2, 2, 1]);
    expect(await found(`from_timestamp=${day(2)}&to_timestamp=${day(3)}`)).toEqual([2, 3, 2]);
    expect(await found('from_timestamp=2026-11-04T10:00:00.001Z')).toEqual([1, 5]);
    for (const same of ['2026-11-04T10:00:00', '2026-11-04 10:00:00', '2026-11-04T12:00:00%2B02:00']) {
      expect(await found(`from_timestamp=${same}`)).toEqual([2, 5, 4]);
    }
  });

  it('filters by project, region, state, type and acknowledgement, with one or several values', async () => {
    expect(await found(`project_id=${of.other}`)).toEqual([1, 4]);
    expect(await found(`project_id=${of.other}&project_id=${of.projectId}`)).toEqual([5, 5, 4, 3, 2, 1]);
    for (const id of [999_999, 2 ** 31, 2 ** 53 - 1]) expect(await found(`project_id=${id}`)).toEqual([0]);
    expect(await found('region_id=1')).toEqual([5, 5, 4, 3, 2, 1]);
    for (const id of [2, -(2 ** 31) - 1]) expect(await found(`region_id=${id}`)).toEqual([0]);
    expect(await found('state=ERROR')).toEqual([1, 5]);
    expect(await found('state=ERROR&state=FINISHED')).toEqual([5, 5, 4, 3, 2, 1]);
    expect(await found('state=NEW')).toEqual([0]);
    expect(await found('task_type=extend_sfs')).toEqual([1, 5]);
    expect(await found('task_type=nothing')).toEqual([0]);
    expect(await found('is_acknowledged=true')).toEqual([1, 2]);
    expect(await found('is_acknowledged=false')).toEqual([4, 5, 4, 3, 1]);
    expect(
      await found(`state=FINISHED&project_id=${of.projectId}&is_acknowledged=false&from_timestamp=${day(2)}`),
    ).toEqual([1, 3]);
  });

  it('refuses invalid values and names the field', async () => {
    const bad = ['limit=0', 'limit=1001', 'offset=-1', 'order_by=up', 'state=DONE', 'project_id=x', 'region_id=1.5'];
    for (const query of [
      ...bad,
      'from_timestamp=yesterday',
      'to_timestamp=2016-12-31T23:59:60Z',
      'is_acknowledged=maybe',
    ]) {
      const answer = await cloud.get(`/cloud/v1/tasks?${query}`, { token: of.token });
      expect([query, answer.status]).toEqual([query, 400]);
      expect(answer.body.errors[0].path).toContain(query.split('=')[0]);
    }
  });
});

describe('active tasks', () => {
  it('are the unfinished tasks of the project and region', async () => {
    const of = await tenant();
    await finished(of, of.other);
    await finished(of);
    const active = async (query = '', project = of.projectId) => {
      const { body } = await cloud.get(`/cloud/v1/tasks/${project}/1/active${query}`, { token: of.token });
      return [body.count, ...body.results.map((task: { id: string }) => task.id)];
    };
    expect(await active()).toEqual([0]);
    const release = host.hold();
    const first = await createShare(of);
    const second = await createShare(of);
    const elsewhere = await createShare(of, of.other);
    expect(await active()).toEqual([2, second, first]);
    expect(await active('', of.other)).toEqual([1, elsewhere]);
    expect(await active('?limit=1&offset=1')).toEqual([2, first]);
    expect(await active('?task_type=create_sfs&task_type=other')).toEqual([2, second, first]);
    expect(await active('?task_type=delete_sfs')).toEqual([0]);
    release();
    for (const id of [first, second, elsewhere]) await wait(id, of.token);
    expect(await active()).toEqual([0]);
    expect((await cloud.get('/cloud/v1/tasks/999999/1/active', { token: of.token })).status).toBe(404);
    expect((await cloud.get(`/cloud/v1/tasks/${of.projectId}/999/active`, { token: of.token })).status).toBe(404);
  });
});

describe('acknowledging', () => {
  /** Two tasks in one project, one in the other, and a function that returns which are acknowledged. */
  async function threeTasks() {
    const of = await tenant();
    const ids = [await finished(of), await finished(of), await finished(of, of.other)];
    const which = async () =>
      Promise.all(ids.map(async (id) => (await wait(id, of.token)).body.acknowledged_at !== null));
    return { of, ids, which };
  }

  it('one task records when and by whom, and a repetition changes nothing', async () => {
    const { of, ids, which } = await threeTasks();
    cloud.clock.set(new Date('2026-11-20T09:52:52.112Z'));
    const path = `/cloud/v1/tasks/${ids[0]}/acknowledge`;
    const { status, body } = await cloud.post(path, undefined, { token: of.token });
    expect([status, body.acknowledged_at]).toEqual([200, '2026-11-20T09:52:52.112000']);
    expect(body.acknowledged_by).toBe(body.user_id);
    cloud.clock.set(null);
    const otherToken = await cloud.newToken(of.clientId, 'member');
    expect((await cloud.post(path, undefined, { token: otherToken })).body).toEqual(body);
    expect(await which()).toEqual([true, false, false]);
  });

  it('all tasks applies to the client, or to a project or region', async () => {
    const { of, which } = await threeTasks();
    const all = (query: string) =>
      cloud.post(`/cloud/v1/tasks/acknowledge_all${query}`, undefined, { token: of.token });
    for (const query of ['region_id=2', 'project_id=2147483648']) expect((await all(`?${query}`)).status).toBe(204);
    expect(await which()).toEqual([false, false, false]);
    expect((await all(`?project_id=${of.other}`)).status).toBe(204);
    expect(await which()).toEqual([false, false, true]);
    expect((await all(`?project_id=${of.projectId}&region_id=1`)).status).toBe(204);
    expect(await which()).toEqual([true, true, true]);
    const next = await finished(of);
    const answer = await all('');
    expect([answer.status, answer.body]).toEqual([204, '']);
    expect((await wait(next, of.token)).body.acknowledged_at).not.toBe(null);
  });

  it('with the deprecated operation applies to the named tasks, or to all without task_ids', async () => {
    const { of, ids, which } = await threeTasks();
    const by = (body: unknown, query = '') =>
      cloud.post(`/cloud/v1/tasks/acknowledge${query}`, body, { token: of.token });
    expect((await by({ task_ids: [ids[1], unknownId] })).status).toBe(204);
    expect(await which()).toEqual([false, true, false]);
    expect((await by({ task_ids: [] })).status).toBe(204);
    expect(await which()).toEqual([false, true, false]);
    expect((await by({ task_ids: null }, `?project_id=${of.other}`)).status).toBe(204);
    expect(await which()).toEqual([false, true, true]);
    expect((await by({})).status).toBe(204);
    expect(await which()).toEqual([true, true, true]);
    expect((await by({ task_ids: ['x'] })).status).toBe(400);
    expect((await by({ tasks: [] })).status).toBe(400);
    const next = await finished(of);
    expect((await by(undefined)).status).toBe(204);
    expect((await wait(next, of.token)).body.acknowledged_at).not.toBe(null);
  });

  it('is forbidden with a reader token', async () => {
    const { of, ids, which } = await threeTasks();
    const token = await cloud.newToken(of.clientId, 'reader');
    for (const path of [`${ids[0]}/acknowledge`, 'acknowledge_all', 'acknowledge']) {
      expect((await cloud.post(`/cloud/v1/tasks/${path}`, undefined, { token })).status).toBe(403);
    }
    expect(await which()).toEqual([false, false, false]);
  });

  it('with a token limited to a project applies to the tasks of that project only', async () => {
    const { of, ids, which } = await threeTasks();
    const token = await cloud.newToken(of.clientId, 'member', [of.other]);
    await cloud.post('/cloud/v1/tasks/acknowledge', { task_ids: ids }, { token });
    await cloud.post('/cloud/v1/tasks/acknowledge_all', undefined, { token });
    expect(await which()).toEqual([false, false, true]);
  });
});

describe('waiting for a task', () => {
  it('responds to all waiting requests when the task ends, and at once if it has ended', async () => {
    const of = await tenant();
    const release = host.hold();
    const id = await createShare(of);
    const answers: string[] = [];
    const requests = ['/cloud/v1', '/v1', '/cloud/v1'].map(async (prefix) => {
      const { body } = await cloud.get(`${prefix}/tasks/${id}?wait=30`, { token: of.token });
      answers.push(body.state);
    });
    await expect.poll(() => host.held.length, soon).toBe(1);
    expect(answers).toEqual([]);
    release();
    await Promise.all(requests);
    expect(answers).toEqual(['FINISHED', 'FINISHED', 'FINISHED']);
    expect((await cloud.get(`/cloud/v1/tasks/${id}?wait=60`, { token: of.token })).body.state).toBe('FINISHED');
  });

  it('responds with the current task at the deadline', async () => {
    const of = await tenant();
    const release = host.hold();
    const id = await createShare(of);
    await expect.poll(() => host.held.length, soon).toBe(1);
    const answer = await cloud.get(`/cloud/v1/tasks/${id}?wait=0.2`, { token: of.token });
    expect(answer).toMatchObject({ status: 200, body: { state: 'RUNNING', finished_on: null } });
    expect((await cloud.get(`/cloud/v1/tasks/${id}?wait=0`, { token: of.token })).body.state).toBe('RUNNING');
    release();
    expect((await wait(id, of.token)).body.state).toBe('FINISHED');
  });

  it('refuses invalid durations and durations above one minute', async () => {
    for (const text of ['-1', '61', 'x', 'Infinity']) {
      const answer = await cloud.get(`/cloud/v1/tasks/${randomUUID()}?wait=${text}`);
      expect([text, answer.status, answer.body.errors[0].path]).toEqual([text, 400, 'wait']);
    }
  });
});
