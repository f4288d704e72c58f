/** Webhooks and e-mail addresses through the API, and delivery of messages: signed, retried under one id, visible, replayable. */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/webhook-receiver.ts';
import { createSimulatedDeliveryDriver } from '../../drivers/simulated/delivery.ts';
import { createWebhookDriver } from '../../drivers/webhook/driver.ts';
import { DriverError } from '../../errors/driver-error.ts';
import type { Email } from '../../drivers/delivery.ts';
import { createKeyring } from '../../platform/encryption.ts';
import { transaction } from '../../platform/db.ts';
import { createWebhooks } from './service.ts';

/** Sent e-mails, and the error that the mail server returns, if any. */
const mailed: Email[] = [];
let refusal: DriverError | null = null;
const cloud = useCloudyard({
  webhookAllowPrivate: true,
  deliveryDrivers: {
    webhook: createWebhookDriver({ allowPrivate: true, now: () => new Date() }),
    email: {
      ...createSimulatedDeliveryDriver<Email>('e-mail', '', ''),
      real: true,
      async send(email) {
        mailed.push(email);
        if (refusal) throw refusal;
        return { answer: '250 queued' };
      },
    },
  },
});
const strict = useCloudyard({ driver: null });

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(() => receiver.stop());
beforeEach(() => {
  receiver.answer();
  receiver.calls.length = 0;
  mailed.length = 0;
  refusal = null;
});

type Client = Awaited<ReturnType<typeof cloud.newClient>>;
const at = ({ clientId }: Client, rest: string) => `/cloudyard/v1/clients/${clientId}/${rest}`;
const hook = (client: Client, body: object = {}) =>
  cloud.post(at(client, 'webhooks'), { url: receiver.url, ...body }, client);
const feed = async (client: Client) => (await cloud.get(at(client, 'notifications'), client)).body.results;
const issue = (client: Client, text = 'a message') =>
  transaction(cloud.db, (tx) =>
    cloud.services.notifications.issue(tx, {
      clientId: client.clientId,
      type: 'quota_threshold',
      subject: text,
      body: { paragraphs: [text] },
      data: { text },
    }),
  );

/** Waits until the only delivery of the only notification matches `state`, and returns it. */
async function delivery(client: Client, state: object) {
  const read = async () => (await feed(client))[0]?.deliveries[0];
  await expect.poll(read, { timeout: 30_000 }).toMatchObject(state);
  return read();
}

/** Makes pending retries run now, without their backoff. */
const skipBackoff = () => cloud.db.$client.query(`update jobs set run_at = now() where locked_by is null`);

describe('a webhook', () => {
  it('is created with a secret of its own, which is shown once', async () => {
    const client = await cloud.newClient();
    const created = await hook(client);
    expect(created).toMatchObject({
      status: 201,
      body: { url: receiver.url, secret: expect.stringMatching(/^whsec_.{43}$/) },
    });
    const { secret, ...shown } = created.body;
    expect((await cloud.get(at(client, 'webhooks'), client)).body).toEqual({ count: 1, results: [shown] });
    expect((await cloud.get(at(client, `webhooks/${shown.id}`), client)).body).toEqual(shown);
    expect((await hook(client, { secret: 'my own secret' })).body.secret).toBe('my own secret');
    expect((await hook(client, { secret: null })).body.secret).toMatch(/^whsec_/);
    expect((await cloud.delete(at(client, `webhooks/${shown.id}`), client)).status).toBe(204);
    expect((await cloud.delete(at(client, `webhooks/${shown.id}`), client)).status).toBe(404);
    expect((await cloud.get(at(client, `webhooks/${shown.id}`), client)).status).toBe(404);
    expect(secret).not.toBe('');
  });

  it('has no plain-text secret in the database or in the response stored for an Idempotency-Key', async () => {
    const client = await cloud.newClient();
    const send = () =>
      cloud.post(at(client, 'webhooks'), { url: receiver.url }, { ...client, headers: { 'idempotency-key': 'once' } });
    const [first, second] = [await send(), await send()];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toEqual(first.body);
    expect((await cloud.get(at(client, 'webhooks'), client)).body.count).toBe(1);
    const { rows } = await cloud.db.$client.query<{ all: string }>(
      `select (select string_agg(w::text, '') from webhooks w) || (select string_agg(k::text, '') from idempotency_keys k) as all`,
    );
    expect(rows[0]!.all).not.toContain(first.body.secret);
    expect(rows[0]!.all).not.toContain(Buffer.from(first.body.secret).toString('hex'));
  });

  it('is changed: pending deliveries go to the new URL, signed with the new secret', async () => {
    const client = await cloud.newClient();
    const { id } = (await hook(client, { url: 'http://127.0.0.1:9/', secret: 'the old secret' })).body;
    const change = (body: object) => cloud.patch(at(client, `webhooks/${id.toUpperCase()}`), body, client);
    await issue(client);
    await delivery(client, { state: 'pending', attempt_count: 1 });
    const moved = await change({ url: receiver.url });
    expect(moved).toMatchObject({ status: 200, body: { id, url: receiver.url } });
    expect(moved.body).not.toHaveProperty('secret');
    expect((await change({ secret: 'the new secret' })).body.secret).toBe('the new secret');
    await skipBackoff();
    await delivery(client, { state: 'delivered' });
    const { headers, body } = receiver.calls[0]!;
    const signed = `${headers['cloudyard-timestamp']}.${body}`;
    const expected = createHmac('sha256', 'the new secret').update(signed).digest('hex');
    expect(headers['cloudyard-signature']).toBe(`v1=${expected}`);
    expect((await change({ secret: null })).body.secret).toMatch(/^whsec_.{43}$/);
    expect((await change({})).body).toEqual(moved.body);
    expect((await change({ url: 'ftp://a.example' })).body.errors).toMatchObject([{ path: 'url' }]);
    const { body: other } = await hook(await cloud.newClient());
    expect((await cloud.patch(at(client, `webhooks/${other.id}`), { secret: null }, client)).status).toBe(404);
    const token = await cloud.newToken(client.clientId, 'member');
    expect((await cloud.patch(at(client, `webhooks/${id}`), {}, { token })).status).toBe(403);
  });

  it('filters the notifications that were sent to it', async () => {
    const client = await cloud.newClient();
    await issue(client, 'before');
    const { id } = (await hook(client)).body;
    await issue(client, 'after');
    await issue(client, 'last');
    const subjects = async (query: string) => {
      const { body } = await cloud.get(at(client, `notifications?${query}`), client);
      return body.results.map(({ subject }: { subject: string }) => subject);
    };
    await expect.poll(() => subjects('delivery_state=delivered'), { timeout: 30_000 }).toEqual(['last', 'after']);
    expect(await subjects(`webhook_id=${id}&delivery_state=delivered&order_by=created_at.asc`)).toEqual([
      'after',
      'last',
    ]);
    expect(await subjects(`webhook_id=${id}&delivery_state=failed`)).toEqual([]);
    expect(await subjects(`webhook_id=${randomUUID()}`)).toEqual([]);
    expect(await subjects('type=quota_threshold&limit=1')).toEqual(['last']);
    expect(await subjects('type=host_unhealthy')).toEqual([]);
    for (const query of ['order_by=subject', 'type=other']) {
      expect((await cloud.get(at(client, `notifications?${query}`), client)).status).toBe(400);
    }
  });

  it('keeps its secret when the encryption key is rotated', async () => {
    const client = await cloud.newClient();
    const [old, current] = [1, 2].map((n) => ({ id: `key-${n}`, key: randomBytes(32) }));
    const over = (keys: (typeof old)[]) =>
      createWebhooks({ ...cloud.services, keyring: createKeyring(keys as never), refuseUrl: async () => null });
    const context = {
      actor: { tokenId: 1, clientId: client.clientId, role: 'admin', projectIds: null, operator: false },
      requestId: 'r',
    } as const;
    await cloud.db.$client.query('delete from webhooks');
    const { id } = await over([old]).create(context, client.clientId, { url: receiver.url, secret: 'kept secret' });
    await over([current, old]).reencrypt();
    expect((await over([current]).receiverOf(id))?.secret).toBe('kept secret');
    await cloud.db.$client.query('delete from webhooks');
  });

  it.each([
    [{}, ['url']],
    [{ url: 5 }, ['url']],
    [{ url: '' }, ['url']],
    [{ url: 'example.com' }, ['url']],
    [{ url: 'ftp://example.com/' }, ['url']],
    [{ url: 'http:///x' }, ['url']],
    [{ url: 'http:example.com' }, ['url']],
    [{ url: 'https://?x' }, ['url']],
    [{ url: '/hook' }, ['url']],
    [{ url: 'https://user:pass@example.com/' }, ['url']],
    [{ url: 'https://example.com/#x' }, ['url']],
    [{ url: `https://example.com/${'x'.repeat(2000)}` }, ['url']],
    [{ url: 'https://example.com/', secret: 'short' }, ['secret']],
    [{ url: 'https://example.com/', secret: 12345678 }, ['secret']],
    [{ url: 'https://example.com/', secrets: 'x' }, ['secrets']],
    [{ url: 'no', secret: '' }, ['url', 'secret']],
    [{ url: 'http://127.0.0.1/' }, ['url']],
    [{ url: 'http://localhost:80/' }, ['url']],
    [{ url: 'http://2130706433/' }, ['url']],
    [{ url: 'http://[::1]/' }, ['url']],
    [{ url: 'http://[::ffff:10.0.0.1]/' }, ['url']],
    [{ url: 'http://10.0.0.1/' }, ['url']],
    [{ url: 'http://169.254.169.254/latest/meta-data' }, ['url']],
    [{ url: 'http://0.0.0.0/' }, ['url']],
  ])('refuses %j and names %j', async (body, fields) => {
    const client = await strict.newClient();
    const answer = await strict.post(at(client, 'webhooks'), body, client);
    expect([answer.status, answer.body.errors?.map(({ path }: { path: string }) => path)]).toEqual([400, fields]);
  });

  it('with a host name that does not resolve yet is accepted, and stored normalized', async () => {
    const client = await strict.newClient();
    const made = await strict.post(at(client, 'webhooks'), { url: 'HTTPS://Hooks.Invalid:443/a/../x?y' }, client);
    expect(made).toMatchObject({ status: 201, body: { url: 'https://hooks.invalid/x?y' } });
  });

  it('requires an admin, and a client has at most sixteen', async () => {
    const client = await cloud.newClient();
    const member = { token: await cloud.newToken(client.clientId, 'member') };
    expect((await cloud.post(at(client, 'webhooks'), { url: receiver.url }, member)).status).toBe(403);
    expect((await cloud.get(at(client, 'webhooks'), member)).status).toBe(200);
    const answers = await Promise.all(Array.from({ length: 20 }, () => hook(client)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(16);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(4);
    expect((await cloud.post(at(client, 'webhooks'), { url: receiver.url })).status).toBe(409);
  });
});

describe('the addresses of a client', () => {
  it('are replaced as a whole and shown', async () => {
    const client = await cloud.newClient();
    const path = at(client, '').slice(0, -1);
    expect((await cloud.get(path, client)).body).toMatchObject({ id: client.clientId, emails: [] });
    const emails = ['b@example.com', 'a.b+c@mail.example.org'];
    expect(await cloud.patch(path, { emails }, client)).toMatchObject({ status: 200, body: { emails } });
    expect((await cloud.patch(path, {}, client)).body.emails).toEqual(emails);
    expect((await cloud.patch(path, { emails: [] }, client)).body.emails).toEqual([]);
    expect((await cloud.get('/cloudyard/v1/clients/987654')).status).toBe(404);
  });

  it.each([
    [{ emails: 'a@example.com' }, 'emails'],
    [{ emails: null }, 'emails'],
    [{ emails: ['nobody'] }, 'emails.0'],
    [{ emails: ['a@example.com', 'A@example.com'] }, 'emails.1'],
    [{ emails: ['a@example.com\r\nBcc: b@example.com'] }, 'emails.0'],
    [{ emails: ['a@example.com, b@example.com'] }, 'emails.0'],
    [{ emails: ['"a b"@example.com'] }, 'emails.0'],
    [{ emails: ['<a@example.com>'] }, 'emails.0'],
    [{ emails: [5] }, 'emails.0'],
    [{ emails: [`${'x'.repeat(250)}@example.com`] }, 'emails.0'],
    [{ emails: Array.from({ length: 21 }, (_, i) => `${i}@example.com`) }, 'emails'],
    [{ nickname: 'x' }, 'nickname'],
  ])('refuses %j and names %s', async (body, field) => {
    const client = await cloud.newClient();
    const answer = await cloud.patch(at(client, '').slice(0, -1), body, client);
    expect([answer.status, answer.body.errors?.map(({ path }: { path: string }) => path)]).toEqual([400, [field]]);
  });
});

describe('a message', () => {
  it('is sent to every address and webhook, and the feed shows their answers', async () => {
    const client = await cloud.newClient();
    await cloud.patch(at(client, '').slice(0, -1), { emails: ['a@example.com', 'b@example.com'] }, client);
    const secret = (await hook(client)).body.secret;
    const id = await issue(client, 'grüße <b>');
    await expect
      .poll(async () => (await feed(client))[0].deliveries.map((d: { state: string }) => d.state))
      .toEqual(['delivered', 'delivered', 'delivered']);
    const [notification] = await feed(client);
    expect(notification).toMatchObject({
      id,
      type: 'quota_threshold',
      subject: 'grüße <b>',
      data: { text: 'grüße <b>' },
    });
    expect(notification.deliveries).toMatchObject([
      { channel: 'email', target: 'a@example.com', attempts: [{ answer: '250 queued' }], attempt_count: 1 },
      { channel: 'email', target: 'b@example.com', next_attempt_at: null, ended_at: expect.any(String) },
      {
        channel: 'webhook',
        target: `http://127.0.0.1:${receiver.port}`,
        attempts: [{ answer: 'answered 200: thanks' }],
      },
    ]);
    expect(mailed.map(({ to }) => to).sort()).toEqual(['a@example.com', 'b@example.com']);
    expect(mailed[0]).toMatchObject({
      id,
      subject: 'grüße <b>',
      text: expect.stringContaining('grüße <b>'),
      html: expect.stringContaining('grüße &lt;b&gt;'),
    });

    const [{ headers, body }] = receiver.calls as [(typeof receiver.calls)[number]];
    expect(JSON.parse(body)).toEqual({
      id,
      type: 'quota_threshold',
      client_id: client.clientId,
      created_at: notification.created_at,
      subject: 'grüße <b>',
      data: { text: 'grüße <b>' },
    });
    const signature = createHmac('sha256', secret).update(`${headers['cloudyard-timestamp']}.${body}`).digest('hex');
    expect(headers).toMatchObject({ 'cloudyard-id': id, 'cloudyard-signature': `v1=${signature}` });
    expect((await cloud.get(at(client, `notifications/${id}`), client)).body).toEqual(notification);
    expect((await cloud.get(at(client, `notifications/${randomUUID()}`), client)).status).toBe(404);
    const other = await cloud.newClient();
    expect((await cloud.get(at(other, `notifications/${id}`), other)).status).toBe(404);
    expect((await cloud.get(at(client, `notifications?limit=1&offset=1`), client)).body).toEqual({
      count: 1,
      results: [],
    });
  });

  it('that is rejected is retried under the same id, and every answer is recorded', async () => {
    const client = await cloud.newClient();
    await hook(client);
    receiver.answer((response) => response.writeHead(503).end('not now'));
    const id = await issue(client);
    const waiting = await delivery(client, { state: 'pending', attempt_count: 1 });
    const wait = Date.parse(waiting.next_attempt_at) - Date.parse(waiting.attempts[0].at);
    expect([waiting.attempts[0].answer, wait]).toEqual(['answered 503: not now', 5000]);
    await skipBackoff();
    const again = await delivery(client, { state: 'pending', attempt_count: 2 });
    expect(Date.parse(again.next_attempt_at) - Date.parse(again.attempts[1].at)).toBe(10_000);
    receiver.answer();
    await skipBackoff();
    const done = await delivery(client, { state: 'delivered', attempt_count: 3, next_attempt_at: null });
    expect(done.attempts.map(({ answer }: { answer: string }) => answer)).toEqual([
      'answered 503: not now',
      'answered 503: not now',
      'answered 200: thanks',
    ]);
    expect(receiver.calls.map(({ headers }) => headers['cloudyard-id'])).toEqual([id, id, id]);
    expect(new Set(receiver.calls.map(({ body }) => body)).size).toBe(1);
  });

  it('fails after 24 hours and can be replayed', async () => {
    const client = await cloud.newClient();
    await hook(client);
    receiver.answer((response) => response.writeHead(500).end());
    const id = await issue(client);
    await delivery(client, { state: 'pending', attempt_count: 1 });
    cloud.clock.advance(24 * 3600);
    await skipBackoff();
    const failed = await delivery(client, { state: 'failed', attempt_count: 2, next_attempt_at: null });
    cloud.clock.set(null);
    receiver.answer();
    const path = at(client, `notifications/${id}/deliveries/${failed.id}/replay`);
    const key = { ...client, headers: { 'idempotency-key': randomUUID() } };
    const replayed = await cloud.post(path, undefined, key);
    expect(replayed).toMatchObject({ status: 200, body: { id, deliveries: [{ state: 'pending' }] } });
    expect((await cloud.post(path, undefined, key)).body).toEqual(replayed.body);
    await delivery(client, { state: 'delivered', attempt_count: 3 });
    expect(receiver.calls.map(({ headers }) => headers['cloudyard-id'])).toEqual([id, id, id]);
    // A delivered message can be replayed too: the receiver may have lost it.
    expect((await cloud.post(path, undefined, client)).status).toBe(200);
    await delivery(client, { state: 'delivered', attempt_count: 4 });
    expect((await cloud.post(path.replace(failed.id, randomUUID()), undefined, client)).status).toBe(404);
    const reader = { token: await cloud.newToken(client.clientId, 'reader') };
    expect((await cloud.post(path, undefined, reader)).status).toBe(403);
  });

  it('to a webhook that was deleted fails, and cannot be replayed', async () => {
    const client = await cloud.newClient();
    const { id: webhookId } = (await hook(client)).body;
    receiver.answer((response) => response.writeHead(500).end());
    const id = await issue(client);
    const pending = await delivery(client, { state: 'pending', attempt_count: 1 });
    await cloud.delete(at(client, `webhooks/${webhookId}`), client);
    await skipBackoff();
    await delivery(client, {
      state: 'failed',
      webhook_id: null,
      attempts: [{}, { answer: 'the webhook was deleted' }],
    });
    const path = at(client, `notifications/${id}/deliveries/${pending.id}/replay`);
    expect((await cloud.post(path, undefined, client)).status).toBe(409);
  });

  it('to an address that does not exist fails at once', async () => {
    const client = await cloud.newClient();
    await cloud.patch(at(client, '').slice(0, -1), { emails: ['gone@example.com'] }, client);
    refusal = new DriverError('x', { customerMessage: '550 no such user', retryable: false });
    await issue(client);
    await delivery(client, { state: 'failed', attempt_count: 1, attempts: [{ answer: '550 no such user' }] });
  });

  it('whose job was lost is still sent', async () => {
    const client = await cloud.newClient();
    await hook(client);
    receiver.answer((response) => response.writeHead(500).end());
    await issue(client);
    const { id } = await delivery(client, { state: 'pending', attempt_count: 1 });
    await cloud.db.$client.query(`delete from jobs where kind = 'deliver' and id = $1`, [id]);
    receiver.answer();
    const before = new Date(Date.now() + 3_600_000);
    const { findWithoutJob, requestAttempts } = await import('../notifications/store.ts');
    expect(await findWithoutJob(cloud.db, before)).toEqual([id]);
    await requestAttempts(cloud.db, [id]);
    expect(await findWithoutJob(cloud.db, before)).toEqual([]);
    await delivery(client, { state: 'delivered' });
  });
});
