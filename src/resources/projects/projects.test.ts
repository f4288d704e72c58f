import { describe, expect, it } from 'vitest';
import { type Answer, errorPaths, useCloudyard } from '../../../test/harness.ts';
import { waiting } from '../../../test/worker.ts';

const cloud = useCloudyard({ driver: null });
const projects = '/cloud/v1/projects';

const names = (answer: Answer) => answer.body.results.map((project: { name: string }) => project.name);

async function usage(clientId: number, token: string): Promise<number> {
  const { body } = await cloud.get(`/cloud/v2/global_quotas/${clientId}`, { token });
  return body.project_count_usage;
}

/** A client with a project besides its default one. */
async function createProject(name = 'a project') {
  const client = await cloud.newClient();
  const created = await cloud.post(projects, { name }, { token: client.token });
  return { ...client, id: created.body.id as number, path: `${projects}/${created.body.id}` };
}

async function createNetwork(project: number, token: string, name = 'a network'): Promise<string> {
  const task = await cloud.ended(await cloud.post(`/cloud/v1/networks/${project}/1`, { name }, { token }), { token });
  return task.body.created_resources.networks[0];
}

describe('creating a project', () => {
  it('returns 201 with the project, which exists', async () => {
    const { clientId, token } = await cloud.newClient();
    const created = await cloud.post(projects, { name: 'website', description: 'public website' }, { token });
    expect(created).toMatchObject({ status: 201, body: { name: 'website', state: 'ACTIVE', client_id: clientId } });
    expect(created.body).toMatchObject({ is_default: false, deleted_at: null, task_id: null });
    expect(created.body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(await cloud.get(`${projects}/${created.body.id}`, { token })).toMatchObject({ body: created.body });
    expect(await usage(clientId, token)).toBe(2);
  });

  it('accepts a null or absent description', async () => {
    const { token } = await cloud.newClient();
    const empty = await cloud.post(projects, { name: 'empty', description: null }, { token });
    const none = await cloud.post(projects, { name: 'none' }, { token });
    expect(empty).toMatchObject({ status: 201, body: { description: null } });
    expect(none).toMatchObject({ status: 201, body: { description: null } });
  });

  it('accepts the client and the state that older official SDKs send', async () => {
    const { clientId, token } = await cloud.newClient();
    const create = (body: object) => cloud.post(projects, { name: 'a project', ...body }, { token });
    expect(errorPaths(await create({ client_id: clientId, state: 'DELETED' }))).toEqual(['state']);
    expect(await create({ client_id: clientId + 1 })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'client_id', message: `must be the client of the token (${clientId})` }] },
    });
    const created = await create({ client_id: clientId, state: 'ACTIVE' });
    expect(created).toMatchObject({ status: 201, body: { client_id: clientId, state: 'ACTIVE' } });
    expect(await create({ name: 'another project', client_id: null, state: null })).toMatchObject({ status: 201 });
    const list = async (id: number) => (await cloud.get(`${projects}?client_id=${id}`, { token })).body;
    expect(await list(clientId)).toMatchObject({ count: 3 });
    expect(await list(clientId + 1)).toEqual({ count: 0, results: [] });
  });

  it('reports an invalid name, a long description and an unknown field at once', async () => {
    const refused = await cloud.post(projects, { name: 'x', description: 'd'.repeat(256), colour: 'red' });
    expect(refused.status).toBe(400);
    expect(errorPaths(refused)).toEqual(expect.arrayContaining(['name', 'description', 'colour']));
  });

  it('refuses the name of another active project of the client, also with parallel requests', async () => {
    const { token } = await cloud.newClient();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => cloud.post(projects, { name: 'one' }, { token })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    for (const refused of answers.filter((answer) => answer.status !== 201)) {
      expect(refused).toMatchObject({ status: 409, body: { exception_class: 'NameTaken' } });
      expect(refused.body.errors).toEqual([{ path: 'name', message: 'is taken' }]);
      expect(refused.headers['x-should-retry']).toBe('false');
    }
    const { token: other } = await cloud.newClient();
    expect(await cloud.post(projects, { name: 'one' }, { token: other })).toMatchObject({ status: 201 });
  });

  it('creates one project per Idempotency-Key', async () => {
    const { token } = await cloud.newClient();
    const options = { token, headers: { 'idempotency-key': 'once' } };
    const first = await cloud.post(projects, { name: 'once' }, options);
    const second = await cloud.post(projects, { name: 'once' }, options);
    expect(second).toMatchObject({ status: 201, body: first.body });
  });

  it('is refused above the quota, and a deleted project releases its quota', async () => {
    const { clientId, token } = await cloud.newClient();
    await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, { project_count_limit: 2 });
    const created = await cloud.post(projects, { name: 'second' }, { token });
    const refused = await cloud.post(projects, { name: 'third' }, { token });
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
    await cloud.delete(`${projects}/${created.body.id}`, { token });
    expect(await cloud.post(projects, { name: 'third' }, { token })).toMatchObject({ status: 201 });
    expect(await usage(clientId, token)).toBe(2);
  });

  it('requires an admin token that is not limited to projects', async () => {
    const { clientId, projectId } = await cloud.newClient();
    const member = await cloud.newToken(clientId, 'member');
    const limited = await cloud.newToken(clientId, 'admin', [projectId]);
    for (const token of [member, limited]) {
      expect(await cloud.post(projects, { name: 'mine' }, { token })).toMatchObject({ status: 403 });
    }
  });
});

describe('listing projects', () => {
  it("returns the client's projects, filtered by part of a name, sorted and in pages", async () => {
    const { token } = await cloud.newClient();
    for (const name of ['beta', 'alpha one', 'Alpha two']) await cloud.post(projects, { name }, { token });
    const list = (query: string) => cloud.get(`${projects}?${query}`, { token });
    expect(names(await list(''))).toEqual(['Alpha two', 'alpha one', 'beta', 'Default']);
    expect(names(await list('order_by=created_at.asc'))).toEqual(['Default', 'beta', 'alpha one', 'Alpha two']);
    expect(names(await list('order_by=name.asc'))).toEqual(['Alpha two', 'Default', 'alpha one', 'beta']);
    expect(names(await list('order_by=name.desc'))).toEqual(['beta', 'alpha one', 'Default', 'Alpha two']);
    expect(await list('name=alpha')).toMatchObject({ body: { count: 1, results: [{ name: 'alpha one' }] } });
    expect(await list('limit=1&offset=1')).toMatchObject({ body: { count: 4, results: [{ name: 'alpha one' }] } });
    expect(errorPaths(await list('order_by=size&limit=0'))).toEqual(expect.arrayContaining(['order_by', 'limit']));
  });

  it('includes deleted projects on request, and their names can be reused', async () => {
    const { id, path, token } = await createProject('phoenix');
    await cloud.delete(path, { token });
    expect(await cloud.post(projects, { name: 'phoenix' }, { token })).toMatchObject({ status: 201 });
    expect((await cloud.get(projects, { token })).body.count).toBe(2);
    const all = await cloud.get(`${projects}?include_deleted=true&name=phoenix`, { token });
    expect(all.body.count).toBe(2);
    expect(all.body.results[1]).toMatchObject({ id, state: 'DELETED', deleted_at: expect.stringMatching(/Z$/) });
  });

  it('returns only the projects that a limited token may access', async () => {
    const { clientId, id } = await createProject();
    const token = await cloud.newToken(clientId, 'reader', [id]);
    expect((await cloud.get(projects, { token })).body).toMatchObject({ count: 1, results: [{ id }] });
  });
});

describe('changing a project', () => {
  it('changes only the given fields', async () => {
    const { path, token } = await createProject('before');
    const changed = await cloud.patch(path, { name: 'after', description: 'new' }, { token });
    expect(changed).toMatchObject({ status: 200, body: { name: 'after', description: 'new' } });
    expect((await cloud.patch(path, {}, { token })).body).toEqual(changed.body);
    expect((await cloud.patch(path, { description: null }, { token })).body).toMatchObject({
      name: 'after',
      description: null,
    });
    expect(await cloud.patch(path, { name: 'Default' }, { token })).toMatchObject({
      status: 409,
      body: { exception_class: 'NameTaken' },
    });
    expect(errorPaths(await cloud.patch(path, { state: 'DELETED' }, { token }))).toEqual(['state']);
  });

  it('replaces all mutable fields with PUT', async () => {
    const { path, token } = await createProject();
    await cloud.patch(path, { description: 'gone soon' }, { token });
    const replaced = await cloud.request('PUT', path, { name: 'replaced' }, { token });
    expect(replaced).toMatchObject({ status: 200, body: { name: 'replaced', description: null } });
    expect(errorPaths(await cloud.request('PUT', path, { description: 'no name' }, { token }))).toEqual(['name']);
  });
});

describe('deleting a project', () => {
  it('returns a finished task and removes the project immediately', async () => {
    const { clientId, id, path, token } = await createProject();
    const task = await cloud.ended(await cloud.delete(path, { token }), { token });
    expect(task.body).toMatchObject({
      state: 'FINISHED',
      task_type: 'delete_project',
      project_id: id,
      region_id: null,
    });
    expect(await cloud.get(path, { token })).toMatchObject({ status: 404 });
    expect(await cloud.patch(path, { name: 'too late' }, { token })).toMatchObject({ status: 404 });
    expect(await cloud.delete(path, { token })).toMatchObject({ status: 404 });
    expect(await usage(clientId, token)).toBe(1);
  });

  it('is refused for the default project', async () => {
    const { projectId, token } = await cloud.newClient();
    const refused = await cloud.delete(`${projects}/${projectId}`, { token });
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect(refused.body.message).toContain('default project');
  });

  it('is refused while resources use the project, and names them', async () => {
    const { id, path, token } = await createProject();
    const network = await createNetwork(id, token);
    await createNetwork(id, token, 'another network');
    const subnet = { name: 'a subnet', network_id: network, cidr: '10.0.0.0/24' };
    await cloud.post(`/cloud/v1/subnets/${id}/1`, subnet, { token });
    const share = { name: 'a share', protocol: 'NFS', size: 1, network: { network_id: network } };
    const created = await cloud.post(`/cloud/v1/file_shares/${id}/1`, share, { token });
    expect(created.status).toBe(200);
    const refused = await cloud.delete(path, { token });
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(refused.body.message).toContain(`2 networks (${network}, `);
    expect(refused.body.message).toContain('1 subnet (');
    expect(refused.body.message).toMatch(/file share/);
  });

  it('prevents the creation of resources in the project', async () => {
    for (let i = 0; i < 10; i++) {
      const { id, path, token } = await createProject();
      const [deleted, ...created] = await Promise.all([
        cloud.delete(path, { token }),
        ...['one', 'two', 'three'].map((name) =>
          cloud.post(`/cloud/v1/networks/${id}/1`, { name: `n ${name}` }, { token }),
        ),
      ]);
      const made = created.filter((answer) => answer.status === 200).length;
      expect(deleted!.status).toBe(made > 0 ? 409 : 200);
      for (const answer of created) expect([200, 404]).toContain(answer.status);
      const { rows } = await cloud.db.$client.query('select id from networks where project_id = $1', [id]);
      expect(rows).toHaveLength(made);
    }
  });

  it.each([
    ['networks', { name: 'a network' }],
    ['volumes', { name: 'a volume', size: 1, source: 'new-volume' }],
    ['lifecycle_policy', { name: 'a policy', action: 'volume_snapshot' }],
    ['registries', { name: 'a-registry' }],
    ['caas/secrets', { name: 'a-secret', login: 'me', password: 'secret', registry: 'registry.example.com' }],
    ['caas/keys', { name: 'a-key', containers: [] }],
  ])('prevents the creation of %s during the deletion', async (collection, body) => {
    const { id, path, token } = await createProject();
    const remove = await cloud.db.$client.connect();
    try {
      await remove.query('begin');
      await remove.query('select from projects where id = $1 for update', [id]);
      await remove.query('update projects set deleted_at = now() where id = $1', [id]);
      const creating = cloud.post(`/cloud/v1/${collection}/${id}/1`, body, { token });
      await expect.poll(waiting(cloud, 'project')).toBe(1);
      await remove.query('commit');
      expect(await creating).toMatchObject({ status: 404, body: { message: `project ${id} not found` } });
      expect(await cloud.get(path, { token })).toMatchObject({ status: 404 });
    } finally {
      // The deletion by SQL released no quota.
      await remove.query('update projects set deleted_at = null where id = $1', [id]);
      remove.release();
    }
  });

  it('takes effect at once for all paths of the project', async () => {
    const { id, path, token } = await createProject();
    const volumes = `/cloud/v1/volumes/${id}/1`;
    expect(await cloud.get(volumes, { token })).toMatchObject({ status: 200 });
    await cloud.delete(path, { token });
    expect(await cloud.get(volumes, { token })).toMatchObject({ status: 404 });
  });

  it('returns 404 to other clients', async () => {
    const { path } = await createProject();
    const { token } = await cloud.newClient();
    for (const [method, body] of [['GET'], ['PATCH', {}], ['PUT', { name: 'mine now' }], ['DELETE']] as const) {
      expect(await cloud.request(method, path, body, { token })).toMatchObject({ status: 404 });
    }
  });
});
