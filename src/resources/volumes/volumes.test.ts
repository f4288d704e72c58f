import { describe, expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({
  configuration: (shipped) => ({
    ...shipped,
    regions: shipped.regions.map((region) => ({ ...region, volume_types: ['standard', 'cold', 'ultra'] })),
  }),
});
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const unknownId = '11111111-1111-4111-8111-111111111111';
const valid = { name: 'a volume', source: 'new-volume', size: 2 };

async function createVolume(changes: object = {}): Promise<Record<string, any>> {
  const task = await cloud.ended(await cloud.post(volumes, { ...valid, ...changes }));
  return (await cloud.get(`${volumes}/${task.body.created_resources.volumes[0]}`)).body;
}

async function createSnapshot(volume_id: string): Promise<string> {
  const task = await cloud.ended(await cloud.post(snapshots, { name: 'a snapshot', volume_id }));
  return task.body.created_resources.snapshots[0];
}

const usage = async () => (await cloud.get('/cloud/v2/regional_quotas/1/1')).body;
const settled = async (id: string) => {
  const { task_id } = (await cloud.get(`${volumes}/${id}`)).body;
  if (task_id) await cloud.get(`/cloud/v1/tasks/${task_id}?wait=20`);
};

describe('a volume', () => {
  it('is created by one task, and the response has every field', async () => {
    const created = await cloud.post(volumes, { ...valid, tags: { b: '2', a: '1' }, type_name: 'ultra' });
    const task = await cloud.ended(created);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_volume', error: null });
    const [id] = task.body.created_resources.volumes;
    const { body } = await cloud.get(`${volumes}/${id}`);
    expect(body).toEqual({
      id,
      name: 'a volume',
      attachments: [],
      bootable: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      creator_task_id: created.body.tasks[0],
      is_root_volume: false,
      limiter_stats: null,
      metadata: { a: '1', b: '2' },
      metadata_detailed: body.tags,
      project_id: 1,
      region: 'local',
      region_id: 1,
      size: 2,
      snapshot_ids: [],
      status: 'available',
      tags: [
        { key: 'a', value: '1', read_only: false },
        { key: 'b', value: '2', read_only: false },
      ],
      task_id: null,
      updated_at: body.created_at,
      volume_image_metadata: null,
      volume_type: 'ultra',
    });
  });

  it('accepts `metadata` as the name of tags and an empty list of snapshots, as the Terraform provider sends them', async () => {
    const { id, tags } = await createVolume({ metadata: { from: 'terraform' } });
    expect(tags).toEqual([{ key: 'from', value: 'terraform', read_only: false }]);
    await cloud.ended(await cloud.delete(`${volumes}/${id}?snapshots=`));
    expect((await cloud.get(`${volumes}/${id}`)).status).toBe(404);
  });

  it('is renamed and tagged without a task, and an empty body changes nothing', async () => {
    const { id } = await createVolume({ tags: { a: '1', b: '2' } });
    const changed = await cloud.patch(`${volumes}/${id}`, { name: 'another name', tags: { a: null, c: '3' } });
    expect(changed.body).toMatchObject({ name: 'another name', status: 'available' });
    expect(changed.body.tags.map(({ key }: { key: string }) => key)).toEqual(['b', 'c']);
    expect((await cloud.patch(`${volumes}/${id}`, {})).body).toEqual(changed.body);
    expect((await cloud.patch(`${volumes}/${id}`, { tags: null })).body.tags).toEqual([]);
  });

  it('can be extended, which counts the difference against the quota, and cannot be shrunk', async () => {
    const { id } = await createVolume();
    const before = await usage();
    const task = await cloud.ended(await cloud.post(`${volumes}/${id}/extend`, { size: 5 }));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'extend_volume' });
    expect((await cloud.get(`${volumes}/${id}`)).body).toMatchObject({ size: 5, status: 'available' });
    expect((await usage()).volume_size_usage).toBe(before.volume_size_usage + 3);
    expect(await cloud.post(`${volumes}/${id}/extend`, { size: 5 })).toMatchObject({
      status: 200,
      body: { tasks: [] },
    });
    for (const size of [4, 0, -1, 1.5, '6', 1e12, undefined]) {
      const answer = await cloud.post(`${volumes}/${id}/extend`, { size });
      expect([size, answer.status, errorPaths(answer)]).toEqual([size, 400, ['size']]);
    }
  });

  it('created from a snapshot has its size and, by default, its volume type', async () => {
    const origin = await createVolume({ type_name: 'cold', size: 3 });
    const snapshot_id = await createSnapshot(origin['id']);
    const copy = await createVolume({ source: 'snapshot', snapshot_id, size: undefined });
    expect(copy).toMatchObject({ size: 3, volume_type: 'cold', status: 'available', snapshot_ids: [] });
    expect(await createVolume({ source: 'snapshot', snapshot_id, size: 3, type_name: 'ultra' })).toMatchObject({
      volume_type: 'ultra',
    });
    const larger = await cloud.post(volumes, { ...valid, source: 'snapshot', snapshot_id, size: 4 });
    expect([larger.status, errorPaths(larger)]).toEqual([400, ['size']]);
  });

  it('reverts to its newest snapshot with an empty response, and is locked until the task ends', async () => {
    const { id } = await createVolume();
    const none = await cloud.post(`${volumes}/${id}/revert`);
    expect(none).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    await createSnapshot(id);
    const options = { headers: { 'idempotency-key': `revert ${id}` } };
    for (const _ of [1, 2]) {
      expect(await cloud.post(`${volumes}/${id}/revert`, undefined, options)).toMatchObject({ status: 200, body: '' });
    }
    await settled(id);
    expect((await cloud.get(`${volumes}/${id}`)).body).toMatchObject({ status: 'available', task_id: null });
    const { rows } = await cloud.db.$client.query(`select state from tasks where task_type = 'revert_volume'`);
    expect(rows).toEqual([{ state: 'FINISHED' }]);
  });

  it.each(['', '?snapshots=', '?snapshots=x,,11111111-1111-4111-8111-111111111111'])(
    'is deleted with its snapshots, which release their quota; the query %j has no further effect',
    async (query) => {
      const before = await usage();
      const { id } = await createVolume();
      const own = [await createSnapshot(id), await createSnapshot(id)];
      expect((await cloud.get(`${volumes}/${id}`)).body.snapshot_ids).toEqual(own);
      const task = await cloud.ended(await cloud.delete(`${volumes}/${id}${query}`));
      expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_volume' });
      for (const gone of [`${volumes}/${id}`, ...own.map((snapshot) => `${snapshots}/${snapshot}`)]) {
        expect((await cloud.get(gone)).status).toBe(404);
      }
      expect(await usage()).toEqual(before);
    },
  );

  it('is deleted without the snapshot that it was created from', async () => {
    const snapshot_id = await createSnapshot((await createVolume()).id);
    const { id } = await createVolume({ source: 'snapshot', snapshot_id });
    await createSnapshot(id);
    await cloud.ended(await cloud.delete(`${volumes}/${id}?snapshots=${snapshot_id}`));
    expect((await cloud.get(`${volumes}/${id}`)).status).toBe(404);
    expect((await cloud.get(`${snapshots}/${snapshot_id}`)).body.status).toBe('available');
  });

  it('changes its type at once, to one that the region offers', async () => {
    const { id } = await createVolume({ type_name: 'ultra' });
    const path = `${volumes}/${id}`;
    const retype = (volume_type: unknown) => cloud.post(`${path}/retype`, { volume_type });
    const before = await usage();
    const refused = await retype('ssd_hiiops');
    expect([refused.status, errorPaths(refused)]).toEqual([400, ['volume_type']]);
    expect(refused.body.message).toContain('the region offers standard, cold, ultra');
    expect((await cloud.get(path)).body.volume_type).toBe('ultra');
    const headers = { 'idempotency-key': 'retype-1' };
    const retyped = await cloud.post(`${path}/retype`, { volume_type: 'standard' }, { headers });
    const repeated = await cloud.post(`${path}/retype`, { volume_type: 'standard' }, { headers });
    expect(repeated).toMatchObject({ status: 200, body: retyped.body });
    expect(retyped).toMatchObject({ status: 200, body: { id, volume_type: 'standard', status: 'available' } });
    expect((await retype('standard')).body).toEqual(retyped.body);
    for (const type of ['cold', 'x', '', null, 1, undefined]) expect((await retype(type)).status).toBe(400);
    expect((await cloud.get(path)).body).toEqual(retyped.body);
    expect(await usage()).toEqual(before);
  });

  it('changes its type while it has snapshots, which are kept', async () => {
    const { id } = await createVolume({ type_name: 'ultra' });
    const snapshot = `${snapshots}/${await createSnapshot(id)}`;
    const before = (await cloud.get(snapshot)).body;
    const retyped = await cloud.post(`${volumes}/${id}/retype`, { volume_type: 'standard' });
    expect(retyped).toMatchObject({ status: 200, body: { volume_type: 'standard', snapshot_ids: [before.id] } });
    expect((await cloud.get(snapshot)).body).toEqual(before);
  });

  it('accepts its current size in an update, and names the operation for another one', async () => {
    const { id } = await createVolume({ size: 2 });
    const path = `${volumes}/${id}`;
    const same = await cloud.patch(path, { size: 2, name: 'renamed' });
    expect(same).toMatchObject({ status: 200, body: { size: 2, name: 'renamed' } });
    for (const size of [1, 3]) {
      const other = await cloud.patch(path, { size, name: 'other' });
      expect([other.status, errorPaths(other)]).toEqual([400, ['size']]);
      expect(other.body.message).toContain('must equal the current size (2 GiB); use the operation extend');
    }
    for (const size of [0, -1, 1.5, null, '2']) expect((await cloud.patch(path, { size })).status).toBe(400);
    expect((await cloud.get(path)).body).toMatchObject({ size: 2, name: 'renamed' });
  });

  it.each(['v1', 'v2'])('is not attached or detached (%s)', async (version) => {
    const { id } = await createVolume();
    const path = `${volumes.replace('v1', version)}/${id}`;
    const instance_id = unknownId;
    for (const [action, body] of [
      ['attach', { instance_id, attachment_tag: 'boot' }],
      ['detach', { instance_id }],
    ] as const) {
      const refused = await cloud.post(`${path}/${action}`, body);
      expect([refused.status, errorPaths(refused)]).toEqual([400, ['instance_id']]);
      expect(refused.body.message).toContain('instances are not supported');
      expect((await cloud.post(`${path}/${action}`, {})).status).toBe(400);
      expect((await cloud.post(`${volumes.replace('v1', version)}/${unknownId}/${action}`, body)).status).toBe(404);
    }
  });

  it.each(['volume', 'snapshot'])('metadata of a %s: adds, lists, gets, replaces and deletes items', async (what) => {
    const { id } = await createVolume();
    const path = what === 'volume' ? `${volumes}/${id}` : `${snapshots}/${await createSnapshot(id)}`;
    const tag = (key: string, value: string) => ({ key, value, read_only: false });
    expect((await cloud.post(`${path}/metadata`, { b: '2', a: '1' })).status).toBe(204);
    expect((await cloud.get(`${path}/metadata`)).body).toEqual({ count: 2, results: [tag('a', '1'), tag('b', '2')] });
    const second = await cloud.get(`${path}/metadata?limit=1&offset=1`);
    expect(second.body).toEqual({ count: 2, results: [tag('b', '2')] });
    const status = what === 'volume' ? 204 : 200;
    expect((await cloud.request('PUT', `${path}/metadata`, { c: '3' })).status).toBe(status);
    expect((await cloud.get(path)).body.tags).toEqual([tag('c', '3')]);
    expect((await cloud.get(`${path}/metadata_item?key=c`)).body).toEqual(tag('c', '3'));
    expect((await cloud.get(`${path}/metadata_item?key=a`)).status).toBe(404);
    expect((await cloud.delete(`${path}/metadata_item?key=c`)).status).toBe(204);
    expect((await cloud.delete(`${path}/metadata_item?key=c`)).status).toBe(404);
    expect((await cloud.delete(`${path}/metadata_item?key=`)).body.errors).toEqual([
      { path: 'key', message: 'must have at least 1 character' },
    ]);
    expect((await cloud.post(`${path}/metadata`, { a: 1, created_by_policy: '1' })).status).toBe(400);
    const refused = await cloud.post(`${path}/metadata`, { created_by_policy: '1' });
    expect([refused.status, errorPaths(refused)]).toEqual([400, ['created_by_policy']]);
    expect((await cloud.get(path)).body.tags).toEqual([]);
  });

  it('lists the valid sources when the source is invalid', async () => {
    const { body } = await cloud.post(volumes, { ...valid, source: 'backup' });
    expect(body.errors).toEqual([{ path: 'source', message: 'must be one of "new-volume", "snapshot"' }]);
  });

  it('rejects tags that only the system sets', async () => {
    const fake = { created_by_policy: '1' };
    const message = { errors: [{ path: 'tags.created_by_policy', message: 'is set by the system' }] };
    expect((await cloud.post(volumes, { ...valid, tags: fake })).body).toMatchObject(message);
    const { id } = await createVolume();
    expect((await cloud.patch(`${volumes}/${id}`, { tags: fake })).body).toMatchObject(message);
    const metadata = await cloud.request('PUT', `${snapshots}/${await createSnapshot(id)}/metadata`, fake);
    expect([metadata.status, errorPaths(metadata)]).toEqual([400, ['created_by_policy']]);
  });

  it('is listed oldest first, filtered by parts of its name and id and by tags', async () => {
    const { projectId, token } = await cloud.newClient();
    const path = `/cloud/v1/volumes/${projectId}/1`;
    const make = async (name: string, tags: object) =>
      (await cloud.ended(await cloud.post(path, { ...valid, name, tags }, { token }), { token })).body.created_resources
        .volumes[0] as string;
    const [one, two] = [await make('first one', { a: '1' }), await make('second one', { a: '2' })];
    const found = async (query: string) => {
      const { body } = await cloud.get(`${path}?${query}`, { token });
      const ids = body.results.map(({ id }: { id: string }) => (id === one ? 1 : id === two ? 2 : id));
      return [body.count, ids];
    };
    expect(await found('')).toEqual([2, [1, 2]]);
    expect(await found('limit=1&offset=1')).toEqual([2, [2]]);
    expect(await found('name_part=first')).toEqual([1, [1]]);
    expect(await found(`id_part=${two.slice(2, 20).toUpperCase()}`)).toEqual([1, [2]]);
    expect(await found('tag_key=a')).toEqual([2, [1, 2]]);
    expect(await found(`tag_key_value=${encodeURIComponent('{"a":"2"}')}`)).toEqual([1, [2]]);
    expect(await found('bootable=false&has_attachments=false')).toEqual([2, [1, 2]]);
    for (const none of ['bootable=true', 'has_attachments=true', `instance_id=${unknownId}`, 'cluster_id=x']) {
      expect(await found(none)).toEqual([0, []]);
    }
    const refused = await cloud.get(`${path}?limit=0&instance_id=x`, { token });
    expect([refused.status, errorPaths(refused)]).toEqual([400, ['limit', 'instance_id']]);
  });

  it('cannot exceed the quota, also with parallel requests', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, {
      region_id: 1,
      volume_count_limit: 100,
      volume_size_limit: 10,
    });
    const path = `/cloud/v1/volumes/${projectId}/1`;
    const answers = await Promise.all(Array.from({ length: 12 }, () => cloud.post(path, valid, { token })));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(5).fill(200), ...Array(7).fill(409)]);
    expect((await cloud.get(path, { token })).body.count).toBe(5);
    const figures = (await cloud.get(`/cloud/v2/regional_quotas/${clientId}/1`, { token })).body;
    expect(figures).toMatchObject({ volume_count_usage: 5, volume_size_usage: 10 });
  });

  it('blocks the deletion of its project', async () => {
    const project = (await cloud.post('/cloud/v1/projects', { name: 'has a volume' })).body.id;
    const created = await cloud.post(`/cloud/v1/volumes/${project}/1`, valid);
    await cloud.ended(created);
    const refused = await cloud.delete(`/cloud/v1/projects/${project}`);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
  });
});

describe('invalid input is refused with the field name and changes nothing', () => {
  const cases: [string, object, string[]][] = [
    ['size 0', { size: 0 }, ['size']],
    ['size 1.5', { size: 1.5 }, ['size']],
    ['size 1e12', { size: 1e12 }, ['size']],
    ['no size', { size: undefined }, ['size']],
    ['a name too short', { name: 'ab' }, ['name']],
    ['a name with odd characters', { name: 'a/b;c' }, ['name']],
    ['a name that ends in a space', { name: 'name ' }, ['name']],
    ['no source', { source: undefined }, ['source']],
    ['an unknown source', { source: 'backup' }, ['source']],
    ['an image', { source: 'image', image_id: unknownId }, ['source']],
    ['an unknown snapshot', { source: 'snapshot', snapshot_id: unknownId }, ['snapshot_id']],
    ['no snapshot', { source: 'snapshot' }, ['snapshot_id']],
    ['a snapshot of an empty volume', { snapshot_id: unknownId }, ['snapshot_id']],
    ['an instance', { instance_id_to_attach_to: unknownId }, ['instance_id_to_attach_to']],
    ['an odd attachment tag', { attachment_tag: 'a,b' }, ['attachment_tag']],
    ['an unknown type', { type_name: 'floppy' }, ['type_name']],
    ['an unknown policy', { lifecycle_policy_ids: [99] }, ['lifecycle_policy_ids.0']],
    ['an invalid policy id', { lifecycle_policy_ids: ['x'] }, ['lifecycle_policy_ids.0']],
    ['an unknown field', { colour: 'red' }, ['colour']],
    ['an empty tag key', { tags: { '': 'v' } }, ['tags.']],
    ['a tag of the system', { tags: { 'cloudyard:x': 'v' } }, ['tags.cloudyard:x']],
    ['everything at once', { size: 0, name: '', source: 'x', no: 1 }, ['no', 'name', 'size', 'source']],
  ];
  it.each(cases)('%s', async (_name, changes, fields) => {
    const before = [(await cloud.get(volumes)).body.count, await usage()];
    const answer = await cloud.post(volumes, { ...valid, ...changes });
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(new Set(errorPaths(answer))).toEqual(new Set(fields));
    expect([(await cloud.get(volumes)).body.count, await usage()]).toEqual(before);
  });

  it('returns 400 for an invalid id, 404 for an unknown id or one of another project', async () => {
    const { id } = await createVolume();
    const { projectId, token } = await cloud.newClient();
    const bodies = { '/extend': { size: 9 }, '/retype': { volume_type: 'standard' }, '/revert': undefined };
    for (const suffix of ['', '/extend', '/retype', '/revert'] as const) {
      const send = (path: string, options = {}) =>
        suffix ? cloud.post(`${path}${suffix}`, bodies[suffix], options) : cloud.get(path, options);
      expect((await send(`${volumes}/x`)).status).toBe(400);
      expect((await send(`${volumes}/${unknownId}`)).status).toBe(404);
      expect((await send(`/cloud/v1/volumes/${projectId}/1/${id}`, { token })).status).toBe(404);
    }
    expect((await cloud.delete(`/cloud/v1/volumes/${projectId}/1/${id}`, { token })).status).toBe(404);
    const other = await cloud.post(`/cloud/v1/snapshots/${projectId}/1`, { name: 'abc', volume_id: id }, { token });
    expect([other.status, errorPaths(other)]).toEqual([400, ['volume_id']]);
  });

  it('a type that the region does not offer', async () => {
    const { body } = await cloud.get('/cloud/v1/regions/1?show_volume_types=true');
    expect(body.available_volume_types).toEqual(['standard', 'cold', 'ultra']);
    expect((await cloud.get('/cloud/v1/regions/1')).body.available_volume_types).toBeNull();
    const answer = await cloud.post(volumes, { ...valid, type_name: 'ssd_hiiops' });
    expect([answer.status, errorPaths(answer)]).toEqual([400, ['type_name']]);
  });
});

describe('prices', () => {
  const price = (what: string, body: object) => cloud.post(`/cloud/v1/pricing/1/1/${what}`, body);

  it('depend on size and type of a volume, also from a snapshot, and on size of a snapshot', async () => {
    const shown = await price('volumes', { source: 'new-volume', size: 100 });
    expect(shown.body).toMatchObject({ currency_code: 'EUR', price_status: 'show', price_per_hour: 0.01287 });
    const ultra = await price('volumes', { source: 'new-volume', size: 100, type_name: 'ultra' });
    expect(ultra.body.price_per_hour).toBeGreaterThan(shown.body.price_per_hour);
    const { id } = await createVolume({ size: 100, type_name: 'ultra' });
    const snapshot_id = await createSnapshot(id);
    expect((await price('volumes', { source: 'snapshot', snapshot_id })).body).toEqual(ultra.body);
    expect((await price('snapshots', { volume_id: id })).body.price_per_hour).toBe(0.006435);
  });

  it('are refused for resources that do not exist or could not be created', async () => {
    const snapshot_id = await createSnapshot((await createVolume({ size: 100 })).id);
    for (const [what, body, path] of [
      ['volumes', { source: 'new-volume' }, 'size'],
      ['volumes', { source: 'new-volume', size: 102_401 }, 'size'],
      ['volumes', { source: 'snapshot', size: 1 }, 'snapshot_id'],
      ['volumes', { source: 'snapshot', snapshot_id, size: 99 }, 'size'],
      ['volumes', { source: 'snapshot', snapshot_id, size: 101 }, 'size'],
      ['volumes', { source: 'snapshot', snapshot_id: unknownId }, 'snapshot_id'],
      ['snapshots', { volume_id: unknownId }, 'volume_id'],
      ['snapshots', {}, 'volume_id'],
    ] as const) {
      const answer = await price(what, body);
      expect([what, body, answer.status, errorPaths(answer)]).toEqual([what, body, 400, [path]]);
    }
  });
});
