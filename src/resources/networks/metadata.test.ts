/** The deprecated operations on the tags of networks and subnets. */
import { expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const unknownId = '11111111-1111-4111-8111-111111111111';

/** A client with its default network or the subnet of it. */
async function clientWith(what: 'network' | 'subnet') {
  const { projectId, ...client } = await cloud.newClient();
  const options = { token: client.token };
  const networks = `/cloud/v1/networks/${projectId}/1`;
  const [network] = (await cloud.get(networks, options)).body.results;
  const [of, id] =
    what === 'network' ? [networks, network.id] : [`/cloud/v1/subnets/${projectId}/1`, network.subnets[0]];
  return { options, of, id, path: `${of}/${id}` };
}

it.each(['network', 'subnet'] as const)(
  'the metadata of a %s: adds, lists, gets, replaces and deletes tags',
  async (what) => {
    const { options, of, id, path } = await clientWith(what);
    const at = (suffix: string, body?: unknown, method = 'GET') =>
      cloud.request(method, `${path}/${suffix}`, body, options);
    const tag = (key: string, value: string) => ({ key, value, read_only: false });
    cloud.clock.advance(60);
    expect((await at('metadata', { b: '2', a: '1' }, 'POST')).status).toBe(204);
    expect((await at('metadata')).body).toEqual({ count: 2, results: [tag('a', '1'), tag('b', '2')] });
    expect((await at('metadata', { c: '3' }, 'PUT')).status).toBe(204);
    const shown = (await cloud.get(path, options)).body;
    expect(shown.tags).toEqual([tag('c', '3')]);
    expect(shown.updated_at).not.toBe(shown.created_at);
    expect((await at('metadata_item?key=c')).body).toEqual(tag('c', '3'));
    for (const method of ['GET', 'DELETE']) {
      expect((await at('metadata_item?key=a', undefined, method)).status).toBe(404);
      for (const query of ['', ...['', 'k'.repeat(256)].map((key) => `?key=${key}`)])
        expect(errorPaths(await at(`metadata_item${query}`, undefined, method))).toEqual(['key']);
    }
    expect((await at('metadata_item?key=c', undefined, 'DELETE')).status).toBe(204);
    // Earlier releases accepted such keys.
    const old = `update ${what}s set tags = '{"a = b": {"value": "1", "read_only": false}}' where id = $1`;
    await cloud.db.$client.query(old, [id]);
    expect((await at('metadata_item?key=a%20%3D%20b')).body).toEqual(tag('a = b', '1'));
    expect((await at('metadata_item?key=a%20%3D%20b', undefined, 'DELETE')).status).toBe(204);
    for (const body of [{ '': 'v' }, { k: 1 }, { k: 'v'.repeat(256) }, { 'cloudyard:x': 'v' }, []]) {
      for (const method of ['POST', 'PUT'])
        expect([body, (await at('metadata', body, method)).status]).toEqual([body, 400]);
    }
    expect((await at('metadata')).body).toEqual({ count: 0, results: [] });
    const stranger = await cloud.newClient();
    expect((await cloud.get(`${path}/metadata`, { token: stranger.token })).status).toBe(404);
    expect((await cloud.get(`${of}/${unknownId}/metadata`, options)).status).toBe(404);
    expect((await cloud.post(`${of}/${unknownId}/metadata`, { a: '1' }, options)).status).toBe(404);
  },
);

it.each(['network', 'subnet'] as const)('a change of the tags of a %s stores no row as its response', async (what) => {
  const { options, path } = await clientWith(what);
  const headers = { 'idempotency-key': `tags of a ${what}` };
  expect((await cloud.request('POST', `${path}/metadata`, { a: '1' }, { ...options, headers })).status).toBe(204);
  const stored = await cloud.db.$client.query('select answer from idempotency_keys where key = $1', [
    headers['idempotency-key'],
  ]);
  expect(stored.rows).toEqual([{ answer: null }]);
});
