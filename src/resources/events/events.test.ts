/** The stream of events of a server: content, authorization, resumption and limits. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type EventReader, readEvents } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { until } from '../../../test/until.ts';
import { transaction } from '../../platform/db.ts';
import { secretV1 } from '../secrets/test-certificates.ts';

const cloud = useCloudyard({ clientLimits: { eventStreams: 3 } });
let url: string;
beforeAll(async () => {
  url = await cloud.app.listen({ port: 0, host: '127.0.0.1' });
});

const readers: EventReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

async function read(token: string, options: Parameters<typeof readEvents>[2] = {}): Promise<EventReader> {
  const reader = await readEvents(url, token, options);
  readers.push(reader);
  if (reader.status === 200) await until(() => reader.text() !== '', 5, 'the first bytes');
  return reader;
}

async function newShare(projectId: number, token: string) {
  const { results } = (await cloud.get(`/cloud/v1/networks/${projectId}/1`, { token })).body;
  return { name: 'share', protocol: 'NFS', size: 1, network: { network_id: results[0].id } };
}

/** Creates a secret, which has no worker, and returns its id. */
async function createSecret(projectId: number, token: string): Promise<string> {
  const created = await cloud.post(`/cloud/v1/secrets/${projectId}/1`, secretV1('opaque', 'x'), { token });
  const task = await cloud.ended(created, { token });
  return task.body.created_resources.secrets[0];
}

describe('a stream', () => {
  it('has the headers of server-sent events and an ID to resume after', async () => {
    const stream = await read((await cloud.newClient()).token);
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    expect(stream.text()).toMatch(/^retry: \d+\nid: \S+\n\n/);
    expect((await cloud.request('HEAD', '/cloudyard/v1/events')).status).toBe(200);
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

  it('filters by projects and kinds, and refuses those that do not exist', async () => {
    const { token, projectId } = await cloud.newClient();
    const other = (await cloud.post('/cloud/v1/projects', { name: 'other' }, { token })).body.id as number;
    const stream = await read(token, { query: `?project_id=${other}&kinds=secret&kinds=project` });
    await createSecret(projectId, token);
    await createSecret(other, token);
    await stream.next({ kind: 'secret', project_id: other });
    expect(stream.received.map(({ data }) => [data!['kind'], data!['project_id']])).toEqual([['secret', other]]);
    const third = (await cloud.post('/cloud/v1/projects', { name: 'third' }, { token })).body.id as number;
    await stream.next({ kind: 'project', resource_id: String(third), change: 'created', project_id: third });
    const stranger = await cloud.newClient();
    const statusOf = async (query: string, of = token) => (await read(of, { query })).status;
    expect(await statusOf(`?project_id=${stranger.projectId}`)).toBe(404);
    expect(await statusOf('?kinds=nothing')).toBe(400);
    expect(await statusOf('?project_id=x')).toBe(400);
    expect(await statusOf(`?last_event_id=${'9'.repeat(101)}`)).toBe(400);
  });
});

describe('authorization', () => {
  it('shows events of the client of the token only, and of the projects of a limited token only', async () => {
    const one = await cloud.newClient();
    const two = await cloud.newClient();
    const { body } = await cloud.post('/cloud/v1/projects', { name: 'second' }, { token: one.token });
    const limited = await read(await cloud.newToken(one.clientId, 'admin', [body.id]));
    const streams = [await read(one.token), await read(two.token)];
    await createSecret(one.projectId, one.token);
    await createSecret(two.projectId, two.token);
    const last = await createSecret(body.id, one.token);
    await streams[0]!.next({ resource_id: last });
    await limited.next({ resource_id: last });
    await streams[1]!.next({ kind: 'secret', client_id: two.clientId });
    const clientsOf = ({ received }: EventReader) => [...new Set(received.map(({ data }) => data!['client_id']))];
    expect(streams.map(clientsOf)).toEqual([[one.clientId], [two.clientId]]);
    expect(new Set(limited.received.map(({ data }) => data!['project_id'] ?? body.id))).toEqual(new Set([body.id]));
  });

  it('shows events of a subscription to user actions to tokens that may read it', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const limited = await read(await cloud.newToken(clientId, 'admin', [projectId]));
    const admin = await read(token);
    const subscription = { url: 'https://example.com/hook', auth_header_name: 'X-Key', auth_header_value: 'value' };
    expect((await cloud.post('/cloud/v1/user_actions/subscribe', subscription, { token })).status).toBe(204);
    await admin.next({ kind: 'user_action_subscription', change: 'created' });
    await limited.next({ resource_id: await createSecret(projectId, token) });
    expect(limited.received.map(({ data }) => data!['kind'])).not.toContain('user_action_subscription');
  });

  it('shows events of notifications about a project to tokens that may see the project', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const other = (await cloud.post('/cloud/v1/projects', { name: 'second' }, { token })).body.id as number;
    const limited = await read(await cloud.newToken(clientId, 'reader', [projectId]));
    const unlimited = [await read(token), await read(cloud.admin)];
    const type = 'lifecycle_policy_run_failed';
    const message = { clientId, subject: 'failed', body: { paragraphs: [] } };
    const issue = (data: Record<string, unknown>) =>
      transaction(cloud.db, (tx) => cloud.services.notifications.issue(tx, { ...message, type, data }));
    const hidden = await issue({ project_id: other });
    const shown = [await issue({ project_id: projectId }), await issue({})];
    for (const stream of unlimited) await stream.next({ resource_id: hidden, project_id: other });
    await limited.next({ resource_id: shown[0], project_id: projectId });
    await limited.next({ resource_id: shown[1], project_id: null });
    expect(limited.received.map(({ data }) => data!['resource_id'])).not.toContain(hidden);
  });

  it('shows events of webhooks to those who may read webhooks', async () => {
    const { clientId, token } = await cloud.newClient();
    const reader = await read(await cloud.newToken(clientId, 'reader'));
    const member = await read(await cloud.newToken(clientId, 'member'));
    const operator = await read(cloud.admin, { query: '?kinds=webhook' });
    const path = `/cloudyard/v1/clients/${clientId}/webhooks`;
    const created = await cloud.post(path, { url: 'https://example.com/hook' }, { token });
    expect(created.status).toBe(201);
    const event = { kind: 'webhook', resource_id: created.body.id, change: 'created', project_id: null };
    await member.next(event);
    await operator.next(event);
    const { body } = await cloud.patch(`/cloudyard/v1/clients/${clientId}`, { emails: ['a@example.com'] }, { token });
    await reader.next({ kind: 'client', resource_id: String(body.id), change: 'updated' });
    expect(reader.received.filter(({ data }) => data!['kind'] === 'webhook')).toEqual([]);
  });
});

describe('a client that reconnects', () => {
  it('gets the events since, in order and once', async () => {
    const { token, projectId } = await cloud.newClient();
    const first = await read(token);
    await first.next({ resource_id: await createSecret(projectId, token) });
    first.close();
    const missed = [await createSecret(projectId, token), await createSecret(projectId, token)];
    const byHeader = await read(token, { lastEventId: first.lastId(), query: '?last_event_id=older' });
    const byQuery = await read(token, { query: `?last_event_id=${first.lastId()}` });
    for (const stream of [byHeader, byQuery]) {
      await stream.next({ kind: 'secret', resource_id: missed[1] });
      const secrets = stream.received.filter(({ data }) => data!['kind'] === 'secret');
      expect(secrets.map(({ event, data }) => [event, data!['resource_id']])).toEqual(
        missed.map((id) => ['message', id]),
      );
    }
    await until(() => byHeader.lastId() === byQuery.lastId(), 5, 'the same last event');
  });

  it('gets a reset for an ID that the server does not have, then new events', async () => {
    const { token, projectId } = await cloud.newClient();
    const stream = await read(token, { lastEventId: 'long ago' });
    await until(() => stream.received.length > 0, 5, 'an event');
    expect(stream.received).toEqual([{ event: 'reset', id: expect.any(String), data: {} }]);
    await stream.next({ kind: 'secret', resource_id: await createSecret(projectId, token) });
    const again = await read(token, { lastEventId: stream.received[0]!.id! });
    await again.next({ kind: 'secret' });
    expect(again.received.some(({ event }) => event === 'reset')).toBe(false);
  });

  it('gets a reset when the connection of the server to the database was lost', async () => {
    const { token, projectId } = await cloud.newClient();
    const stream = await read(token);
    await cloud.db.$client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    await until(() => stream.received.some(({ event }) => event === 'reset'), 10, 'a reset');
    await stream.next({ kind: 'secret', resource_id: await createSecret(projectId, token) });
  });
});

describe('limits', () => {
  it('of open streams of a client answer 429, and free a place when a stream ends', async () => {
    const { token } = await cloud.newClient();
    const streams = [await read(token), await read(token), await read(token)];
    const refused = await read(token);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    expect((await read((await cloud.newClient()).token)).status).toBe(200);
    streams[0]!.close();
    await until(async () => (await read(token)).status === 200, 5, 'a free place');
  });

  it('a slow reader gets a reset, and the server buffers little for it', async () => {
    const { token, clientId } = await cloud.newClient();
    const slow = await read(token);
    slow.pause();
    const insert = `insert into webhooks (id, client_id, url, secret, created_at)
      select gen_random_uuid(), $1, 'https://example.com', '', now() from generate_series(1, 3000)`;
    for (let i = 0; i < 20; i++) await cloud.db.$client.query(insert, [clientId]);
    const witness = await read(token);
    await cloud.db.$client.query(insert.replace('3000', '1'), [clientId]);
    await witness.next({ kind: 'webhook' });
    slow.resume();
    await until(() => slow.received.some(({ event }) => event === 'reset'), 20, 'a reset');
    expect(slow.received.length).toBeLessThan(60_000);
  });
});
