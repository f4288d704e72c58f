import { describe, expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard();
const shares = '/cloud/v1/file_shares/1/1';
const unknownId = '11111111-1111-4111-8111-111111111111';

async function networkOf(project = 1, token?: string): Promise<string> {
  const { body } = await cloud.get(`/cloud/v1/networks/${project}/1`, { token });
  return body.results[0].id;
}

async function createShare(changes: object = {}): Promise<Record<string, any>> {
  const answer = await cloud.post(shares, { ...(await valid()), ...changes });
  const task = await cloud.ended(answer);
  return (await cloud.get(`${shares}/${task.body.created_resources.file_shares[0]}`)).body;
}

async function valid() {
  return { name: 'a share', protocol: 'NFS', size: 1, network: { network_id: await networkOf() } };
}

async function count(): Promise<number> {
  return (await cloud.get(shares)).body.count;
}

const usage = async () => (await cloud.get('/cloud/v2/regional_quotas/1/1')).body;

describe('creating a file share', () => {
  it('returns one task, and the share is available when the task has finished', async () => {
    const created = await cloud.post(shares, { ...(await valid()), tags: { b: '2', a: '1' } });
    expect(created).toMatchObject({ status: 200, body: { tasks: [expect.any(String)] } });
    const task = await cloud.ended(created);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_sfs', error: null });
    const [id] = task.body.created_resources.file_shares;
    const share = await cloud.get(`${shares}/${id}`);
    expect(share.body).toMatchObject({
      id,
      name: 'a share',
      status: 'available',
      size: 1,
      connection_point: `127.0.0.1:/shares/${id}`,
      creator_task_id: created.body.tasks[0],
      task_id: null,
      protocol: 'NFS',
      type_name: 'standard',
      volume_type: 'default_share_type',
      share_settings: { type_name: 'standard' },
      region: 'local',
      tags: [
        { key: 'a', value: '1', read_only: false },
        { key: 'b', value: '2', read_only: false },
      ],
    });
    expect(share.body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
  });

  it('creates one share per Idempotency-Key, also with parallel requests', async () => {
    const before = await count();
    const body = await valid();
    const options = { headers: { 'idempotency-key': 'once' } };
    const answers = await Promise.all(Array.from({ length: 5 }, () => cloud.post(shares, body, options)));
    const again = await cloud.post(shares, body, options);
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: again.body });
    expect(await count()).toBe(before + 1);
    const other = await cloud.post(shares, { ...body, size: 2 }, options);
    expect(other).toMatchObject({ status: 409, body: { exception_class: 'IdempotencyKeyReused' } });
    expect(other.headers['x-should-retry']).toBe('false');
  });

  it('accepts exactly ten of fifty parallel requests under a limit of ten', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, { region_id: 1, sfs_count_limit: 10 });
    const body = { ...(await valid()), network: { network_id: await networkOf(projectId, token) } };
    const path = `/cloud/v1/file_shares/${projectId}/1`;
    const answers = await Promise.all(Array.from({ length: 50 }, () => cloud.post(path, body, { token })));
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(10);
    for (const refused of answers.filter((answer) => answer.status !== 200)) {
      expect(refused).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
      expect(refused.body.message).toContain('limit 10, in use 10, requested 1');
    }
    const list = await cloud.get(path, { token });
    expect(list.body).toMatchObject({ count: 10 });
    const quotas = await cloud.get(`/cloud/v2/regional_quotas/${clientId}/1`, { token });
    expect(quotas.body).toMatchObject({ sfs_count_usage: 10, sfs_size_usage: 10 });
  });
});

describe('invalid input is refused with the field name and changes nothing', () => {
  const cases: [string, object, string[]][] = [
    ['size 0', { size: 0 }, ['size']],
    ['size -1', { size: -1 }, ['size']],
    ['size 1.5', { size: 1.5 }, ['size']],
    ['size 1e12', { size: 1e12 }, ['size']],
    ['size as text', { size: '1' }, ['size']],
    ['no size', { size: undefined }, ['size']],
    ['a name too short', { name: 'ab' }, ['name']],
    ['a name too long', { name: 'a'.repeat(64) }, ['name']],
    ['a name with odd characters', { name: 'a/b;c' }, ['name']],
    ['another protocol', { protocol: 'SMB' }, ['protocol']],
    ['an unknown field', { colour: 'red' }, ['colour']],
    ['an unknown network', { network: { network_id: unknownId } }, ['network.network_id']],
    ['an invalid network id', { network: { network_id: 'x' } }, ['network.network_id']],
    ['a tag key of 256 characters', { tags: { ['k'.repeat(256)]: 'v' } }, [`tags.${'k'.repeat(256)}`]],
    ['an empty tag key', { tags: { '': 'v' } }, ['tags.']],
    ['a tag value of 256 characters', { tags: { k: 'v'.repeat(256) } }, ['tags.k']],
    ['tags as an array', { tags: [] }, ['tags']],
    ['65 tags', { tags: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 'v'])) }, ['tags']],
    ['an unknown type', { type_name: 'ddn' }, ['type_name']],
    [
      'a rule with an invalid address',
      { access: [{ access_mode: 'rw', ip_address: '1.2.3' }] },
      ['access.0.ip_address'],
    ],
    [
      'a duplicate rule',
      {
        access: [
          { access_mode: 'rw', ip_address: '1.2.3.4' },
          { access_mode: 'ro', ip_address: '1.2.3.4/32' },
        ],
      },
      ['access.1.ip_address'],
    ],
    ['settings of vast', { share_settings: { path_length: 'LCD' } }, ['share_settings.path_length']],
    ['everything at once', { size: 0, name: '', protocol: 'x', no: 1 }, ['no', 'name', 'protocol', 'size']],
  ];
  it.each(cases)('%s', async (_name, changes, fields) => {
    const before = [await count(), await usage()];
    const answer = await cloud.post(shares, { ...(await valid()), ...changes });
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(new Set(errorPaths(answer))).toEqual(new Set(fields));
    expect([await count(), await usage()]).toEqual(before);
  });

  it('an unknown type, with the known ones', async () => {
    const errorsOf = async (changes: object) =>
      (await cloud.post(shares, { ...(await valid()), ...changes })).body.errors;
    const types = 'must be one of "standard", "vast"';
    expect(await errorsOf({ type_name: 'ddn', network: undefined })).toEqual([{ path: 'type_name', message: types }]);
    expect(await errorsOf({ type_name: null })).toEqual([{ path: 'type_name', message: types }]);
    expect(await errorsOf({ volume_type: 'ddn' })).toEqual([
      { path: 'volume_type', message: 'must be one of "default_share_type", "vast_share_type"' },
    ]);
  });

  it('a network of another project', async () => {
    const { projectId, token } = await cloud.newClient();
    const network = { network_id: await networkOf(projectId, token) };
    const answer = await cloud.post(shares, { ...(await valid()), network });
    expect([answer.status, errorPaths(answer)]).toEqual([400, ['network.network_id']]);
  });

  it('invalid bodies', async () => {
    const send = (payload: string, type = 'application/json') =>
      cloud.app.inject({
        method: 'POST',
        url: shares,
        headers: { authorization: `apikey ${cloud.admin}`, 'content-type': type },
        payload,
      });
    expect((await send('{"size": ')).statusCode).toBe(400);
    expect((await send('')).statusCode).toBe(400);
    expect((await send('[]')).statusCode).toBe(400);
    expect((await send('null')).statusCode).toBe(400);
    expect((await send('{"__proto__": 1}')).statusCode).toBe(400);
    expect((await send('size=1', 'application/x-www-form-urlencoded')).statusCode).toBe(415);
    expect((await send('{}', 'text/plain')).statusCode).toBe(415);
    const large = await send(JSON.stringify({ name: 'x'.repeat(2 * 1024 * 1024) }));
    expect(large.statusCode).toBe(413);
    expect(large.json()).toMatchObject({ exception_class: 'BodyTooLarge', request_id: expect.any(String) });
  });

  it('invalid ids', async () => {
    expect((await cloud.get('/cloud/v1/file_shares/one/1')).status).toBe(400);
    expect((await cloud.get('/cloud/v1/file_shares/1/one')).status).toBe(400);
    expect((await cloud.get(`${shares}/not-a-uuid`)).status).toBe(400);
    expect((await cloud.get(`/cloud/v1/file_shares/99999999999999999999/1`)).status).toBe(400);
  });

  it('unknown or invisible resources return 404', async () => {
    expect((await cloud.get(`${shares}/${unknownId}`)).status).toBe(404);
    expect((await cloud.get('/cloud/v1/file_shares/999/1')).status).toBe(404);
    expect((await cloud.get('/cloud/v1/file_shares/1/999')).status).toBe(404);
    const { projectId, token } = await cloud.newClient();
    expect((await cloud.get(shares, { token })).status).toBe(404);
    expect((await cloud.get(`/cloud/v1/file_shares/${projectId}/1`)).status).toBe(404);
    const share = await createShare();
    const elsewhere = `/cloud/v1/file_shares/${projectId}/1/${share.id}`;
    expect((await cloud.get(elsewhere, { token })).status).toBe(404);
    expect((await cloud.delete(elsewhere, { token })).status).toBe(404);
  });
});

describe('updating a file share', () => {
  it('v1 returns the share; tags follow RFC 7386', async () => {
    const share = await createShare({ tags: { keep: '1', change: '1', drop: '1' } });
    const path = `${shares}/${share.id}`;
    const updated = await cloud.patch(path, { name: 'renamed', tags: { change: '2', drop: null, add: '3' } });
    expect(updated).toMatchObject({ status: 200, body: { name: 'renamed', id: share.id } });
    expect(updated.body.tags.map((tag: any) => [tag.key, tag.value])).toEqual([
      ['add', '3'],
      ['change', '2'],
      ['keep', '1'],
    ]);
    expect((await cloud.patch(path, { tags: null })).body.tags).toEqual([]);
  });

  it('v3 returns a task for a change and none without a change', async () => {
    const share = await createShare();
    const path = `/cloud/v3/file_shares/1/1/${share.id}`;
    expect((await cloud.patch(path, {})).body).toEqual({ tasks: [] });
    expect((await cloud.patch(path, { name: share.name })).body).toEqual({ tasks: [] });
    expect((await cloud.patch(path, { size: share.size })).body).toEqual({ tasks: [] });
    const task = await cloud.ended(await cloud.patch(path, { share_settings: { root_squash: true }, name: 'other' }));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'update_sfs' });
    const after = (await cloud.get(`${shares}/${share.id}`)).body;
    expect(after).toMatchObject({ name: 'other', status: 'available', share_settings: { root_squash: true } });
  });

  it('shows root_squash once it was given, false too, and not before', async () => {
    const shown = async (id: string) => (await cloud.get(`${shares}/${id}`)).body.share_settings;
    const given = await createShare({ share_settings: { root_squash: false } });
    expect(await shown(given.id)).toEqual({ type_name: 'standard', root_squash: false });
    const { id } = await createShare();
    expect(await shown(id)).toEqual({ type_name: 'standard' });
    await cloud.patch(`${shares}/${id}`, { name: 'renamed' });
    expect(await shown(id)).toEqual({ type_name: 'standard' });
    // The host does not notice that its default was given.
    const path = `/cloud/v3/file_shares/1/1/${id}`;
    const answer = await cloud.patch(path, { share_settings: { root_squash: false } });
    expect((await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body.state).toBe('FINISHED');
    expect(await shown(id)).toEqual({ type_name: 'standard', root_squash: false });
    expect((await cloud.patch(path, { share_settings: { root_squash: false } })).body).toEqual({ tasks: [] });
    for (const root_squash of [true, false]) {
      await cloud.ended(await cloud.patch(path, { share_settings: { root_squash } }));
      expect(await shown(id)).toEqual({ type_name: 'standard', root_squash });
    }
  });

  it('accepts the current size, and names the operation for another one', async () => {
    const share = await createShare({ size: 2 });
    const path = `${shares}/${share.id}`;
    const same = await cloud.patch(path, { size: 2, name: 'renamed', tags: { a: '1' } });
    expect(same).toMatchObject({ status: 200, body: { size: 2, name: 'renamed' } });
    for (const size of [1, 3]) {
      const other = await cloud.patch(path, { size, name: 'other', share_settings: { path_length: 'LCD' } });
      expect([other.status, errorPaths(other)]).toEqual([400, ['share_settings.path_length', 'size']]);
      expect(other.body.message).toContain('must equal the current size (2 GiB); use the operation extend');
    }
    for (const size of [0, -1, 1.5, null, '2']) expect((await cloud.patch(path, { size })).status).toBe(400);
    expect((await cloud.get(path)).body).toMatchObject({ name: 'renamed', size: 2 });
  });

  it('ignores a larger size beside other fields in v3, and refuses other sizes before it changes anything', async () => {
    const share = await createShare({ size: 2 });
    const path = `/cloud/v3/file_shares/1/1/${share.id}`;
    for (const body of [{ size: 3 }, { size: 1 }, { size: 1, name: 'other' }]) {
      const refused = await cloud.patch(path, body);
      expect([refused.status, errorPaths(refused)]).toEqual([400, ['size']]);
    }
    expect((await cloud.patch(path, { size: 3, name: 'renamed' })).body.tasks).toHaveLength(1);
    expect((await cloud.get(`${shares}/${share.id}`)).body).toMatchObject({ name: 'renamed', size: 2 });
  });

  it('refuses null, unknown fields and settings of vast, naming each', async () => {
    const share = await createShare();
    const answer = await cloud.patch(`${shares}/${share.id}`, { name: null, size: 0, share_settings: { x: 1 } });
    expect(answer.status).toBe(400);
    expect(new Set(errorPaths(answer))).toEqual(new Set(['name', 'size', 'share_settings.x']));
    const vast = await cloud.patch(`${shares}/${share.id}`, { share_settings: { allowed_characters: 'LCD' } });
    expect([vast.status, errorPaths(vast)]).toEqual([400, ['share_settings.allowed_characters']]);
  });
});

describe('extending a file share', () => {
  it('reserves quota and shows the new size when done', async () => {
    const share = await createShare();
    const before = await usage();
    const task = await cloud.ended(await cloud.post(`${shares}/${share.id}/extend`, { size: 5 }));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'extend_sfs' });
    expect((await cloud.get(`${shares}/${share.id}`)).body).toMatchObject({ size: 5, status: 'available' });
    expect((await usage()).sfs_size_usage).toBe(before.sfs_size_usage + 4);
  });

  it('refuses a smaller size and a size above the quota', async () => {
    const share = await createShare({ size: 3 });
    const smaller = await cloud.post(`${shares}/${share.id}/extend`, { size: 2 });
    expect([smaller.status, errorPaths(smaller)]).toEqual([400, ['size']]);
    const larger = await cloud.post(`${shares}/${share.id}/extend`, { size: 900_000_000 });
    expect(larger).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
    expect((await cloud.get(`${shares}/${share.id}`)).body).toMatchObject({
      size: 3,
      status: 'available',
      task_id: null,
    });
  });
});

describe('deleting a file share', () => {
  it('releases its quota, and the share returns 404', async () => {
    const before = await usage();
    const share = await createShare({ size: 7 });
    const task = await cloud.ended(await cloud.delete(`${shares}/${share.id}`));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_sfs' });
    expect((await cloud.get(`${shares}/${share.id}`)).status).toBe(404);
    expect((await cloud.delete(`${shares}/${share.id}`)).status).toBe(404);
    expect(await usage()).toEqual(before);
  });
});

describe('access rules', () => {
  const rulesOf = async (id: string) => (await cloud.get(`${shares}/${id}/access_rule`)).body;
  const settled = async (id: string) => {
    for (;;) {
      const rules = await rulesOf(id);
      if (rules.results.every((rule: any) => rule.state === 'active')) return rules;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  it('are created with a share, added and removed, and only the affected rule changes state', async () => {
    const share = await createShare({ access: [{ access_mode: 'ro', ip_address: '10.0.0.0/24' }] });
    const [first] = (await rulesOf(share.id)).results;
    expect(first).toMatchObject({ access_level: 'ro', access_to: '10.0.0.0/24', state: 'active' });
    const added = await cloud.post(`${shares}/${share.id}/access_rule`, { access_mode: 'rw', ip_address: '1.2.3.4' });
    expect(added).toMatchObject({ status: 200, body: { access_level: 'rw', access_to: '1.2.3.4' } });
    expect((await rulesOf(share.id)).results[0]).toEqual(first);
    const rules = await settled(share.id);
    expect(rules).toMatchObject({ count: 2, results: [first, { id: added.body.id, state: 'active' }] });
    const removed = await cloud.delete(`${shares}/${share.id}/access_rule/${first.id}`);
    expect([removed.status, removed.body]).toEqual([204, '']);
    await expect.poll(async () => (await rulesOf(share.id)).count).toBe(1);
    expect((await cloud.delete(`${shares}/${share.id}/access_rule/${first.id}`)).status).toBe(404);
  });

  it('are deleted by an ID in upper case, too', async () => {
    const share = await createShare({ access: [{ access_mode: 'ro', ip_address: '10.0.0.0/24' }] });
    const [{ id }] = (await rulesOf(share.id)).results;
    expect((await cloud.delete(`${shares}/${share.id}/access_rule/${id.toUpperCase()}`)).status).toBe(204);
  });

  it.each(['1.2.3.4/32', '::ffff:1.2.3.4'])('treat 1.2.3.4 and %s as equal', async (spelling) => {
    const share = await createShare({ access: [{ access_mode: 'ro', ip_address: '1.2.3.4' }] });
    const again = await cloud.post(`${shares}/${share.id}/access_rule`, { access_mode: 'rw', ip_address: spelling });
    expect(again).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
  });
});

describe('metadata of a file share', () => {
  it('adds, lists, gets, replaces and deletes', async () => {
    const share = await createShare({ tags: { a: '1' } });
    const path = `${shares}/${share.id}/metadata`;
    expect((await cloud.post(path, { b: '2' })).status).toBe(204);
    expect((await cloud.get(path)).body).toEqual({
      count: 2,
      results: [
        { key: 'a', value: '1', read_only: false },
        { key: 'b', value: '2', read_only: false },
      ],
    });
    expect((await cloud.request('PUT', path, { c: '3' })).status).toBe(204);
    expect((await cloud.get(`${path}_item?key=c`)).body).toEqual({ key: 'c', value: '3', read_only: false });
    expect((await cloud.get(`${path}_item?key=a`)).status).toBe(404);
    expect((await cloud.get(`${path}_item`)).status).toBe(400);
    expect((await cloud.delete(`${path}_item?key=c`)).status).toBe(204);
    expect((await cloud.delete(`${path}_item?key=c`)).status).toBe(404);
  });
});

describe('listing file shares', () => {
  it('filters, pages, counts all that match, and keeps its order', async () => {
    const { projectId, token } = await cloud.newClient();
    const network = { network_id: await networkOf(projectId, token) };
    const path = `/cloud/v1/file_shares/${projectId}/1`;
    for (const name of ['alpha one', 'alpha two', 'beta one']) {
      await cloud.post(path, { ...(await valid()), name, network }, { token });
    }
    const names = async (query: string) => {
      const { body } = await cloud.get(`${path}?${query}`, { token });
      return [body.count, ...body.results.map((share: any) => share.name)];
    };
    expect(await names('')).toEqual([3, 'alpha one', 'alpha two', 'beta one']);
    expect(await names('limit=1&offset=1')).toEqual([3, 'alpha two']);
    expect(await names('name=alpha&limit=1')).toEqual([2, 'alpha one']);
    expect(await names('name=%25')).toEqual([0]);
    for (const type of ['vast', 'ddn']) expect(await names(`type_name=${type}`)).toEqual([0]);
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'offset=-1', 'type_name=x']) {
      expect((await cloud.get(`${path}?${query}`, { token })).status).toBe(400);
    }
  });
});
