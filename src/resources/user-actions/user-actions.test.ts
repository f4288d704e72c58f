/** User actions through the API: the official shape, filters, isolation. */
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/webhook-receiver.ts';
import { officialNameOf, officialOperations } from './actions.ts';

const cloud = useCloudyard({ driver: null, webhookAllowPrivate: true });
const path = '/cloud/v1/user_actions';

type Client = Awaited<ReturnType<typeof cloud.newClient>>;
let client: Client;
let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(() => receiver.stop());
beforeEach(async () => {
  client = await cloud.newClient();
  receiver.answer();
  receiver.calls.length = 0;
});
afterEach(async () => {
  await cloud.db.$client.query('delete from user_action_subscriptions');
});

const list = async (query = '', options: object = client) => (await cloud.get(path + query, options)).body;
const newProject = (name: string, of: Client = client) => cloud.post('/cloud/v1/projects', { name }, of);
const newNetwork = async (name: string, of: Client = client) =>
  (await cloud.post(`/cloud/v1/networks/${of.projectId}/1`, { name }, of)).body;

const header = { auth_header_name: 'Authorization', auth_header_value: 'Bearer s3cret of mine' };
const subscribe = (of: Client = client, more: object = {}) =>
  cloud.post(`${path}/subscribe`, { url: receiver.url, ...header, ...more }, of);

describe('user actions', () => {
  it('have the official shape', async () => {
    await newProject('first');
    const { count, results } = await list();
    expect(count).toBe(results.length);
    expect(results[0]).toEqual({
      id: expect.stringMatching(/^\d+$/),
      timestamp: expect.stringMatching(/Z$/),
      action_type: 'create',
      api_group: 'project',
      acknowledged: false,
      action_data: { operation: 'createProject', request_id: expect.any(String) },
      client_id: client.clientId,
      project_id: expect.any(Number),
      region_id: null,
      user_id: expect.any(Number),
      token_id: results[0].user_id,
      issued_by_user_id: null,
      email: null,
      source_user_ip: '127.0.0.1',
      user_agent: expect.any(String),
      task_id: null,
      is_complete: true,
      resources: expect.arrayContaining([
        {
          resource_id: expect.stringMatching(/^\d+$/),
          resource_type: 'project',
          resource_body: expect.objectContaining({ name: 'first' }),
          search_field: 'first',
        },
      ]),
      total_price: null,
    });
    const { tasks } = await newNetwork('wire');
    expect((await list('?limit=1')).results[0]).toMatchObject({
      task_id: tasks[0],
      project_id: client.projectId,
      region_id: 1,
    });
  });

  it('name the task that they started', async () => {
    const { results } = (await cloud.get(`/cloud/v1/networks/${client.projectId}/1`, client)).body;
    const one = (what: string, id: string) => `/cloud/v1/${what}/${client.projectId}/1/${id}`;
    const [subnet, network] = [one('subnets', results[0].subnets[0]), one('networks', results[0].id)];
    const started = [];
    for (const url of [subnet, network]) started.push((await cloud.delete(url, client)).body.tasks[0]);
    await newProject('without a task');
    const ids = (await list('?order_by=asc')).results.map(({ task_id }: { task_id: string | null }) => task_id);
    expect(ids.slice(-3)).toEqual([...started, null]);
  });

  it('are filtered by every parameter, in both orders', async () => {
    cloud.clock.set(new Date('2026-03-01T00:00:00Z'));
    await newProject('old');
    cloud.clock.set(new Date('2026-03-02T00:00:00.4Z'));
    await newNetwork('wire');
    cloud.clock.set(null);
    const agent = { ...client, headers: { 'user-agent': 'terraform/1' } };
    await cloud.post('/cloud/v1/projects', { name: 'new' }, agent);
    const found = async (query: string) =>
      (await list(`?${query}`)).results.map(({ resources }: any) => resources[0].search_field);
    expect(await found('')).toEqual(['new', 'wire', 'old']);
    expect(await found('order_by=asc')).toEqual(['old', 'wire', 'new']);
    expect(await found('sorting=asc&limit=1&offset=1')).toEqual(['wire']);
    expect(await found('api_group=network&api_group=volume')).toEqual(['wire']);
    expect(await found('action_type=delete')).toEqual([]);
    expect(await found('action_type=create&action_type=delete')).toHaveLength(3);
    expect(await found(`project_id=${client.projectId}`)).toEqual(['wire']);
    expect(await found('region_id=1&region_id=2')).toEqual(['wire']);
    for (const name of ['project_id', 'region_id']) expect(await found(`${name}=2147483648`)).toEqual([]);
    expect(await found('from_timestamp=2026-03-02T00:00:00Z')).toEqual(['new', 'wire']);
    expect(await found('to_timestamp=2026-03-02T00:00:00Z')).toEqual(['wire', 'old']);
    expect(await found('search_field=old')).toEqual(['old']);
    expect(await found('search_field=ol')).toEqual([]);
    expect(await found('user_agents=terraform/1')).toEqual(['new']);
    expect(await found('source_user_ips=127.0.0.1&source_user_ips=10.0.0.1')).toHaveLength(3);
    expect(await found('source_user_ips=10.0.0.1')).toEqual([]);
    const id = (await list('?search_field=wire')).results[0].resources[0].resource_id;
    expect(await found(`resource_id=${id}&resource_id=nothing`)).toEqual(['wire']);
    for (const bad of [
      'action_type=explode',
      'api_group=x',
      'from_timestamp=soon',
      'limit=0',
      'order_by=up',
      'project_id=x',
    ]) {
      expect((await cloud.get(`${path}?${bad}`, client)).status).toBe(400);
    }
  });

  it('on the volumes of a policy are filtered by the volume', async () => {
    const at = (what: string) => `/cloud/v1/${what}/${client.projectId}/1`;
    const newVolume = async () => {
      const answer = await cloud.post(at('volumes'), { name: 'data', size: 1, source: 'new-volume' }, client);
      const { body } = await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`, client);
      return body.created_resources.volumes[0] as string;
    };
    const [volume, other] = [await newVolume(), await newVolume()];
    const body = { action: 'volume_snapshot', name: 'nightly' };
    const policy = `${at('lifecycle_policy')}/${(await cloud.post(at('lifecycle_policy'), body, client)).body.id}`;
    for (const change of ['add_volumes_to_policy', 'remove_volumes_from_policy']) {
      await cloud.request('PUT', `${policy}/${change}`, { volume_ids: [volume] }, client);
    }
    const found = async (query: string) =>
      (await list(`?order_by=asc&${query}`)).results.map((one: any) => `${one.action_type} ${one.api_group}`);
    const members = ['create lifecycle_policy_volume_member', 'delete lifecycle_policy_volume_member'];
    expect(await found(`resource_id=x&resource_id=${volume}`)).toEqual(['create volume', ...members]);
    expect(await found(`resource_id=${other.toUpperCase()}`)).toEqual(['create volume']);
  });

  it('that delete show the whole resource, with its name', async () => {
    const worker = await cloud.startWorker();
    const body = { name: 'data', size: 1, source: 'new-volume' };
    const created = await cloud.ended(
      await cloud.post(`/cloud/v1/volumes/${client.projectId}/1`, body, client),
      client,
    );
    const [id] = created.body.created_resources.volumes;
    await cloud.delete(`/cloud/v1/volumes/${client.projectId}/1/${id}`, client);
    await worker.stop();
    expect((await list('?action_type=delete')).results[0].resources).toEqual([
      {
        ...{ resource_id: id, resource_type: 'volume', search_field: 'data' },
        resource_body: expect.objectContaining({ name: 'data', size: 1, deleted_at: null }),
      },
    ]);
  });

  it('of one client are invisible to another one, and those of a project to tokens of other projects', async () => {
    const other = await cloud.newClient();
    await newNetwork('mine');
    await newNetwork('theirs', other);
    const second = (await newProject('second')).body.id;
    const resources = async (options: object) =>
      (await list('', options)).results.flatMap((one: any) => one.resources.map((r: any) => r.search_field));
    expect(await resources(client)).not.toContain('theirs');
    expect(await resources(other)).not.toContain('mine');
    const reader = { token: await cloud.newToken(client.clientId, 'reader') };
    expect(await resources(reader)).toEqual(await resources(client));
    const limited = { token: await cloud.newToken(client.clientId, 'reader', [second]) };
    expect(await resources(limited)).toEqual(['second']);
    expect(await resources({})).toEqual(expect.arrayContaining(['mine', 'theirs']));
    const operatorReader = { token: await cloud.newToken(1, 'reader') };
    expect(await resources(operatorReader)).not.toContain('mine');
  });

  it('show no secret', async () => {
    const secret = { registry: 'registry.test', login: 'robot', password: 'a very secret password' };
    await cloud.post(`/cloud/v1/caas/secrets/${client.projectId}/1`, { name: 'pull', ...secret }, client);
    await subscribe();
    const text = JSON.stringify(await list());
    expect(text).toContain('caas_pull_secret');
    expect(text).not.toContain(secret.password);
    const audit = JSON.stringify((await cloud.get('/cloudyard/v1/audit', client)).body);
    expect(audit).toContain('user_action_subscriptions');
    expect(audit).not.toContain(header.auth_header_value);
    expect(audit).not.toContain(receiver.url);
  });

  it('include every change of a resource that has an official name', () => {
    const writes = readFileSync('policy.txt', 'utf8')
      .split('\n')
      .map((line) => line.split(/\s+/))
      .filter(([, method, at, , role]) => method !== 'GET' && at?.startsWith('/cloud/') && role !== 'reader')
      .map(([operation]) => operation!);
    const others = [
      ...['acknowledgeTask', 'acknowledgeTasks', 'acknowledgeAllTasks'],
      ...['setNotificationThreshold', 'deleteNotificationThreshold'],
      ...['subscribeToUserActions', 'unsubscribeFromUserActions'],
    ];
    expect(writes.filter((operation) => !officialNameOf(operation)).sort()).toEqual(others.sort());
  });

  it('are of operations that exist', () => {
    const policy = readFileSync('policy.txt', 'utf8');
    expect(officialOperations().filter((operation) => !new RegExp(`^${operation} `, 'm').test(policy))).toEqual([]);
  });
});
