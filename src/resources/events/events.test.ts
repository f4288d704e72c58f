import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readEvents } from '../../../test/event-stream.ts';
import type { EventReader } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { until } from '../../../test/processes.ts';

const cloud = useCloudyard();
let url: string;
beforeAll(async () => {
  url = await cloud.app.listen({ port: 0, host: '127.0.0.1' });
});

const readers: EventReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

async function read(token = cloud.admin, options: Parameters<typeof readEvents>[2] = {}): Promise<EventReader> {
  const reader = await readEvents(url, token, options);
  readers.push(reader);
  return reader;
}

async function newShare(projectId: number, token: string) {
  const { results } = (await cloud.get(`/cloud/v1/networks/${projectId}/1`, { token })).body;
  return { name: 'share', protocol: 'NFS', size: 1, network: { network_id: results[0].id } };
}

describe('a stream', () => {
  it('has the headers of server-sent events and an ID to resume after', async () => {
    const { token } = await cloud.newClient();
    const stream = await read(token);
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    await until(() => stream.lastId() !== '', 5, 'the first ID');
    expect(stream.text()).toContain('retry: ');
  });

  it('reports a share from its creation to its removal, with its tasks', async () => {
    const { token, projectId, clientId } = await cloud.newClient();
    const stream = await read(token);
    const shares = `/cloud/v1/file_shares/${projectId}/1`;
    const created = await cloud.ended(await cloud.post(shares, await newShare(projectId, token), { token }), { token });
    const id = created.body.created_resources.file_shares[0];
    const event = await stream.next({ kind: 'file_share', resource_id: id, change: 'created' });
    expect(event).toEqual({
      id: expect.any(String),
      kind: 'file_share',
      resource_id: id,
      change: 'created',
      client_id: clientId,
      project_id: projectId,
      region_id: 1,
      task_id: created.body.id,
      at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    await stream.next({ kind: 'task', resource_id: created.body.id, change: 'created', task_id: created.body.id });
    await stream.next({ kind: 'task', resource_id: created.body.id, change: 'updated' });
    await stream.next({ kind: 'file_share', resource_id: id, change: 'updated' });
    await stream.next({ kind: 'quota', resource_id: String(clientId), change: 'updated' });
    await cloud.ended(await cloud.delete(`${shares}/${id}`, { token }), { token });
    await stream.next({ kind: 'file_share', resource_id: id, change: 'deleted' });
    const ids = stream.received.map((each) => each.id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
