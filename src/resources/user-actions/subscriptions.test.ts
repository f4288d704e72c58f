/** Subscriptions to user actions, and their deliveries. */
import { createHmac, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { type Call, startWebhookReceiver, type WebhookReceiver } from '../../../test/webhook-receiver.ts';
import { systemClock } from '../../platform/clock.ts';
import { createKeyring } from '../../platform/encryption.ts';
import { silentLogger } from '../../platform/log.ts';
import type { UserActionDeliveries } from './reconcile.ts';
import { createUserActions } from './service.ts';
import { startDeliveries } from './test-deliveries.ts';

const cloud = useCloudyard({ driver: null, webhookAllowPrivate: true });
const strict = useCloudyard({ driver: null });
const path = '/cloud/v1/user_actions';

type Client = Awaited<ReturnType<typeof cloud.newClient>>;
let client: Client;
let receiver: WebhookReceiver;
const started: UserActionDeliveries[] = [];
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
  for (const one of started.splice(0)) await one.stop();
  await cloud.db.$client.query('delete from user_action_subscriptions');
});

const list = async (query = '', options: object = client) => (await cloud.get(path + query, options)).body;
const newProject = (name: string, of: Client = client) => cloud.post('/cloud/v1/projects', { name }, of);
const header = { auth_header_name: 'Authorization', auth_header_value: 'Bearer s3cret of mine' };
const subscribe = (of: Client = client, more: object = {}) =>
  cloud.post(`${path}/subscribe`, { url: receiver.url, ...header, ...more }, of);

function startProcess(log = silentLogger): UserActionDeliveries {
  const one = startDeliveries(cloud, { log });
  started.push(one);
  return one;
}

async function deliver(deliveries = startProcess()): Promise<void> {
  await deliveries.deliverDue();
  await deliveries.idle();
}

/** Makes rested subscriptions and retries due now. */
async function skipBackoff(): Promise<void> {
  await cloud.db.$client.query('update user_action_subscriptions set busy_until = null');
  await cloud.db.$client.query('update user_action_deliveries set next_attempt_at = now()');
}

const namesOf = (calls: readonly Call[]) =>
  calls.map(({ body }) => JSON.parse(body).resources[0]?.search_field ?? JSON.parse(body).action_type);

describe('a subscription', () => {
  it('is listed, is the only one of its client, and can be deleted', async () => {
    expect(await subscribe()).toMatchObject({ status: 204, body: '' });
    const { body } = await cloud.get(`${path}/subscriptions_list`, client);
    expect(body).toEqual({ count: 1, results: [{ id: expect.any(Number), url: receiver.url, ...header }] });
    expect(await subscribe()).toMatchObject({ status: 409, body: { message: expect.stringContaining('unsubscribe') } });
    const other = await cloud.newClient();
    expect((await cloud.get(`${path}/subscriptions_list`, other)).body).toEqual({ count: 0, results: [] });
    expect((await cloud.post(`${path}/unsubscribe`, undefined, other)).status).toBe(404);
    expect((await cloud.post(`${path}/unsubscribe`, undefined, client)).status).toBe(204);
    expect((await cloud.get(`${path}/subscriptions_list`, client)).body.count).toBe(0);
    expect((await cloud.post(`${path}/unsubscribe`, undefined, client)).status).toBe(404);
  });

  it('is for admins of the whole client', async () => {
    const member = { ...client, token: await cloud.newToken(client.clientId, 'member') };
    expect((await subscribe(member)).status).toBe(403);
    expect((await cloud.get(`${path}/subscriptions_list`, member)).status).toBe(403);
    const limited = { ...client, token: await cloud.newToken(client.clientId, 'admin', [client.projectId]) };
    expect((await subscribe(limited)).status).toBe(403);
    expect((await cloud.get(`${path}/subscriptions_list`, limited)).status).toBe(403);
    expect((await cloud.post(`${path}/unsubscribe`, undefined, limited)).status).toBe(403);
  });

  it.each<[object, string[]]>([
    [{ url: 'ftp://example.com/' }, ['url']],
    [{ url: 'nowhere' }, ['url']],
    [{ url: 'https://user:password@example.com/' }, ['url']],
    [{ auth_header_name: 'Content-Length' }, ['auth_header_name']],
    [{ auth_header_name: 'Cloudyard-Signature', url: 'ftp://example.com/' }, ['auth_header_name', 'url']],
    [{ auth_header_name: 'X: y' }, ['auth_header_name']],
    [{ auth_header_name: '' }, ['auth_header_name']],
    [{ auth_header_value: 'a\r\nx: y' }, ['auth_header_value']],
    [{ auth_header_value: '' }, ['auth_header_value']],
    [{ auth_header_value: 'é' }, ['auth_header_value']],
    [{ exchange: 'amqp' }, ['exchange']],
  ])('with %j is refused', async (more, paths) => {
    const answer = await subscribe(client, more);
    expect(answer.status).toBe(400);
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toEqual(paths);
    expect((await cloud.get(`${path}/subscriptions_list`, client)).body.count).toBe(0);
  });

  it.each([
    'http://127.0.0.1/',
    'http://10.0.0.1/',
    'http://169.254.169.254/latest',
    'http://[::1]/',
    'http://localhost/',
  ])('to the private address %s is refused', async (url) => {
    const { token } = await strict.newClient();
    const answer = await strict.post(`${path}/subscribe`, { url, ...header }, { token });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toEqual([
      { path: 'url', message: expect.stringContaining('not on the public internet') },
    ]);
  });

  it('keeps its header under a new key', async () => {
    await subscribe();
    const { rows } = await cloud.db.$client.query('select id, auth_header_value from user_action_subscriptions');
    expect(rows[0].auth_header_value.toString('latin1')).not.toContain('s3cret');
    const [old, next] = [randomBytes(32), randomBytes(32)];
    const keyring = createKeyring([
      { id: 'new', key: next },
      { id: 'old', key: old },
    ]);
    const service = createUserActions({
      ...{ db: cloud.db, clock: systemClock, idempotency: cloud.services.idempotency, keyring },
      refuseUrl: async () => null,
    });
    const context = `user_action_subscription:${rows[0].id}`;
    const ciphertext = createKeyring([{ id: 'old', key: old }]).encrypt(Buffer.from('Bearer other'), context);
    await cloud.db.$client.query('update user_action_subscriptions set auth_header_value = $1', [ciphertext]);
    expect(await service.reencrypt()).toBe(1);
    expect(await service.reencrypt()).toBe(0);
    const after = await cloud.db.$client.query('select id, auth_header_value from user_action_subscriptions');
    const [{ id, auth_header_value: authHeaderValue }] = after.rows;
    expect(service.valueOf({ id, authHeaderValue })).toBe('Bearer other');
  });
});

describe('a subscriber', () => {
  it('gets each action once, signed, with its header, and the action is acknowledged', async () => {
    await newProject('before');
    await subscribe();
    await newProject('after');
    await deliver();
    expect(namesOf(receiver.calls)).toEqual(['after']);
    const [call] = receiver.calls as [Call];
    const [action] = (await list('?limit=1')).results;
    expect(JSON.parse(call.body)).toEqual({ ...action, acknowledged: false });
    expect(action.acknowledged).toBe(true);
    const timestamp = call.headers['cloudyard-timestamp'] as string;
    const expected = createHmac('sha256', header.auth_header_value).update(`${timestamp}.${call.body}`).digest('hex');
    expect(call.headers).toMatchObject({
      authorization: header.auth_header_value,
      'cloudyard-id': action.id,
      'cloudyard-signature': `v1=${expected}`,
    });
    await skipBackoff();
    await deliver();
    expect(receiver.calls).toHaveLength(1);
  });

  it('gets only the actions of its own client', async () => {
    const other = await cloud.newClient();
    await subscribe();
    await newProject('theirs', other);
    await newProject('mine');
    await deliver();
    expect(namesOf(receiver.calls)).toEqual(['mine']);
  });

  it('that fails gets the action again under the same id, after a backoff', async () => {
    await subscribe();
    await newProject('again');
    receiver.answer((response) => void response.writeHead(500).end());
    const deliveries = startProcess();
    await deliver(deliveries);
    await deliver(deliveries);
    expect(receiver.calls).toHaveLength(1);
    expect((await list('?limit=1')).results[0].acknowledged).toBe(false);
    const { rows } = await cloud.db.$client.query(
      `select extract(epoch from busy_until - now())::float as rest, s.failures,
              extract(epoch from d.next_attempt_at - now())::float as delay
       from user_action_subscriptions s join user_action_deliveries d on d.subscription_id = s.id and d.state = 'pending'`,
    );
    expect(rows).toEqual([{ rest: expect.closeTo(5, 0), failures: 1, delay: expect.closeTo(5, 0) }]);
    await skipBackoff();
    receiver.answer();
    await deliver(deliveries);
    expect(new Set(receiver.calls.map(({ headers, body }) => `${headers['cloudyard-id']} ${body}`)).size).toBe(1);
    expect((await list('?limit=1')).results[0].acknowledged).toBe(true);
  });

  it('shows the delivery of an action, and repeats it under the same id', async () => {
    const at = (id: string) => `/cloudyard/v1/user_actions/${id}/delivery`;
    await newProject('before');
    const [before] = (await list('?limit=1')).results;
    await subscribe();
    await newProject('again');
    const [action] = (await list('?limit=1')).results;
    receiver.answer((response) => void response.writeHead(410).end());
    const pending = { user_action_id: action.id, state: 'pending', failures: 0, next_attempt_at: expect.any(String) };
    const gone = { at: expect.any(String), answer: 'answered 410' };
    expect((await cloud.get(at(action.id), client)).body).toEqual({ ...pending, attempts: [] });
    await deliver();
    const failed = { ...pending, state: 'failed', failures: 1, next_attempt_at: null, attempts: [gone] };
    expect((await cloud.get(at(action.id), client)).body).toEqual(failed);
    receiver.answer();
    const thanks = { ...gone, answer: 'answered 200: thanks' };
    const other = await cloud.newClient();
    await subscribe(other);
    expect((await cloud.get(at(before.id), client)).status).toBe(404);
    expect((await cloud.get(at(action.id), other)).status).toBe(404);
    expect((await cloud.post(`${at(action.id)}/replay`, undefined, other)).status).toBe(404);
    expect((await cloud.post(`${at(action.id)}/replay`, undefined, client)).body).toEqual({
      ...pending,
      attempts: [gone],
    });
    await deliver();
    const delivered = { ...pending, state: 'delivered', next_attempt_at: null, attempts: [gone, thanks] };
    expect((await cloud.get(at(action.id), client)).body).toEqual(delivered);
    expect(receiver.calls.map(({ headers }) => headers['cloudyard-id'])).toEqual([action.id, action.id]);
    const limited = { ...client, token: await cloud.newToken(client.clientId, 'admin', [client.projectId]) };
    expect((await cloud.get(at(action.id), limited)).status).toBe(403);
    expect((await cloud.post(`${at(action.id)}/replay`, undefined, limited)).status).toBe(403);
  });

  it('is not called by a second process because of a replay', async () => {
    await subscribe();
    await newProject('again');
    const [{ id }] = (await list('?limit=1')).results;
    receiver.answer((response) => void response.writeHead(500).end());
    await deliver();
    await skipBackoff();
    receiver.answer(() => {});
    const calling = startProcess();
    await calling.deliverDue();
    await expect.poll(() => receiver.calls.length).toBe(2);
    expect((await cloud.post(`/cloudyard/v1/user_actions/${id}/delivery/replay`, undefined, client)).status).toBe(200);
    await deliver();
    expect(receiver.calls).toHaveLength(2);
  });

  it('has the last ten responses shown, oldest first', async () => {
    await subscribe();
    await newProject('again');
    const [{ id }] = (await list('?limit=1')).results;
    const deliveries = startProcess();
    for (let status = 500; status < 512; status++) {
      receiver.answer((response) => void response.writeHead(status).end());
      await skipBackoff();
      await deliver(deliveries);
    }
    const { attempts } = (await cloud.get(`/cloudyard/v1/user_actions/${id}/delivery`, client)).body;
    const answers = attempts.map(({ answer }: { answer: string }) => answer);
    expect(answers).toEqual(Array.from({ length: 10 }, (_, i) => `answered ${502 + i}`));
  });

  it.each([
    ['the whole value', 'you sent Bearer s3cret of mine!'],
    ['the value without its scheme', 'invalid token "s3cret"'],
    ['the beginning of the value, where the answer is cut off', `${'x'.repeat(476)}Bearer s3cret of mine`],
  ])('that returns %s of its header has it stored and logged nowhere', async (_what, text) => {
    await subscribe();
    await newProject('echo');
    const [{ id }] = (await list('?limit=1')).results;
    receiver.answer((response) => void response.writeHead(401).end(text));
    const logged: unknown[] = [];
    const log = { ...silentLogger, warn: (...line: unknown[]) => void logged.push(line) } as typeof silentLogger;
    await deliver(startProcess(log));
    const { attempts } = (await cloud.get(`/cloudyard/v1/user_actions/${id}/delivery`, client)).body;
    expect(attempts).toEqual([
      { at: expect.any(String), answer: expect.stringMatching(/^answered 401: .*\[redacted\]/) },
    ]);
    expect(logged).toHaveLength(1);
    const { rows } = await cloud.db.$client.query('select attempts::text from user_action_deliveries');
    for (const kept of [JSON.stringify(rows), JSON.stringify(logged, ['answer', 'message', 'stack', 'err'])]) {
      expect(kept).not.toMatch(/s3c|Bearer s/);
    }
  });

  it('that refuses one action gets the others', async () => {
    await subscribe();
    for (const name of ['poison', 'one', 'two']) await newProject(name);
    receiver.answer((response, { body }) => void response.writeHead(body.includes('poison') ? 400 : 200).end());
    await deliver();
    expect(namesOf(receiver.calls).sort()).toEqual(['one', 'poison', 'two']);
    await newProject('three');
    await deliver();
    expect(namesOf(receiver.calls).at(-1)).toBe('three');
    const { rows } = await cloud.db.$client.query(
      `select state, count(*) from user_action_deliveries group by 1 order by 1`,
    );
    expect(rows).toContainEqual({ state: 'pending', count: 1 });
  });

  it('that is gone, or has failed for a day, is not called again about that action', async () => {
    await subscribe();
    await newProject('gone');
    receiver.answer((response) => void response.writeHead(410).end());
    await deliver();
    await skipBackoff();
    await deliver();
    expect(receiver.calls).toHaveLength(1);
    receiver.answer((response) => void response.writeHead(503).end());
    await newProject('late');
    await cloud.db.$client.query(`update audit_entries set at = at - interval '1 day'`);
    await skipBackoff();
    await deliver();
    await skipBackoff();
    await deliver();
    expect(namesOf(receiver.calls)).toEqual(['gone', 'late']);
  });

  it('gets actions again in the past of the clock of development mode', async () => {
    cloud.clock.set(new Date('2020-01-01T00:00:00Z'));
    onTestFinished(() => cloud.clock.set(null));
    await subscribe();
    await newProject('past');
    receiver.answer((response) => void response.writeHead(500).end());
    for (let i = 0; i < 2; i++) await deliver().then(skipBackoff);
    expect(receiver.calls).toHaveLength(2);
  });

  it('that hangs delays neither changes nor other subscribers', async () => {
    const slow = await Promise.all(Array.from({ length: 12 }, () => cloud.newClient()));
    const hanging: ServerResponse[] = [];
    receiver.answer((response, call) => {
      if (call.path === '/slow') hanging.push(response);
      else response.writeHead(200).end();
    });
    for (const one of slow) {
      await subscribe(one, { url: receiver.url.replace('/hook', '/slow') });
      for (let i = 0; i < 7; i++) await newProject(`slow ${i}`, one);
    }
    const deliveries = startProcess();
    await deliveries.deliverDue();
    await expect.poll(() => hanging.length).toBe(12 * 7);
    await subscribe();
    await newProject('quick');
    const start = performance.now();
    await deliveries.deliverDue();
    await expect.poll(() => receiver.calls.some(({ path: at }) => at === '/hook')).toBe(true);
    expect(performance.now() - start).toBeLessThan(5000);
    for (const response of hanging) response.writeHead(200).end();
    await deliveries.idle();
  });

  it('gets each action from one process only, however many there are', async () => {
    await subscribe();
    for (let i = 0; i < 30; i++) await newProject(`project ${i}`);
    const processes = Array.from({ length: 4 }, () => startProcess());
    await Promise.all(processes.map((one) => deliver(one)));
    expect(namesOf(receiver.calls).sort()).toEqual(Array.from({ length: 30 }, (_, i) => `project ${i}`).sort());
  });

  it('gets the actions that a stopped process left, at once, and those of a dead one when its lease ends', async () => {
    await subscribe();
    await newProject('left');
    receiver.answer(() => {});
    const first = startProcess();
    await first.deliverDue();
    await expect.poll(() => receiver.calls.length).toBe(1);
    await first.stop();
    receiver.answer();
    await deliver();
    expect(namesOf(receiver.calls)).toEqual(['left', 'left']);

    await newProject('orphan');
    await cloud.db.$client.query(`update user_action_subscriptions set busy_until = now() + interval '30 s'`);
    await deliver();
    expect(receiver.calls).toHaveLength(2);
    await cloud.db.$client.query(`update user_action_subscriptions set busy_until = now() - interval '1 s'`);
    await deliver();
    expect(namesOf(receiver.calls).at(-1)).toBe('orphan');
  });

  it('gets nothing more after the client has unsubscribed', async () => {
    await subscribe();
    await newProject('dropped');
    await cloud.post(`${path}/unsubscribe`, undefined, client);
    await deliver();
    expect(receiver.calls).toEqual([]);
    const { rows } = await cloud.db.$client.query('select from user_action_deliveries');
    expect(rows).toEqual([]);
  });
});
