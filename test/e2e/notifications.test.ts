/** Alerts from real processes to a real mail server and a real webhook receiver, also when processes are killed. */
import { afterEach, describe, expect, it } from 'vitest';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { headersOf, startSmtpServer } from '../smtp-server.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../webhook-receiver.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

const timeout = { timeout: 300_000 };
const settings = {
  CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
  CLOUDYARD_WEBHOOK_ALLOW_PRIVATE: '1',
  CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: '1',
};

let yard: Yard;
let receiver: WebhookReceiver;
afterEach(async () => {
  yard?.cleanUp();
  await receiver?.stop();
});

async function open(own: Record<string, string> = {}): Promise<void> {
  receiver = await startWebhookReceiver();
  yard = await openYard({ ...settings, ...own });
}

/** Sets a limit of two shares and registers a webhook. */
async function prepare(): Promise<void> {
  await yard.insist('PATCH', '/cloudyard/v1/clients/1/quotas', {
    region_id: 1,
    sfs_count_limit: 2,
    sfs_size_limit: 100,
  });
  expect((await yard.post('/cloudyard/v1/clients/1/webhooks', { url: receiver.url })).status).toBe(201);
}

async function cross(): Promise<void> {
  const networkId = await defaultNetwork(yard);
  for (const name of ['one', 'two']) {
    expect((await yard.insist('POST', shares, newShare(name, networkId))).status).toBe(200);
  }
}

async function onlyNotification() {
  const { body } = await yard.insist('GET', '/cloudyard/v1/clients/1/notifications');
  expect(body.count).toBe(1);
  return body.results[0];
}

/** Expects that the alert arrived, always with the same id, and is recorded as delivered. */
async function expectArrived(): Promise<void> {
  await until(() => receiver.calls.length > 0, 60, 'the message');
  await until(
    async () => (await onlyNotification()).deliveries[0].state === 'delivered',
    60,
    'the delivery to be recorded',
  );
  const { id, data } = await onlyNotification();
  expect([...new Set(receiver.calls.map(({ headers }) => headers['cloudyard-id']))]).toEqual([id]);
  expect(data.regional_quotas).toMatchObject([{ sfs_count_usage: { limit: 2, usage: 2 } }]);
  const threshold = await yard.insist('GET', '/cloud/v2/client_quotas/1/notification_threshold');
  expect(threshold.body.last_message.regional_quotas).toEqual(data.regional_quotas);
}

describe('an alert', () => {
  const roles: Record<string, string[][]> = {
    'a server with a worker in one process': [['start']],
    'a server and a worker': [['serve'], ['worker', '--region', '1']],
    'a server alone': [['serve']],
  };
  it.each(Object.keys(roles))('is sent by %s', timeout, async (name) => {
    await open();
    const running: Running[] = [];
    for (const args of roles[name]!) running.push(await yard.start(args));
    await prepare();
    await cross();
    await expectArrived();
    expect(receiver.calls).toHaveLength(1);
    const { drivers } = (await yard.get('/healthz/drivers')).body;
    expect(drivers.filter(({ driver }: { driver: string }) => driver === 'webhook').length).toBe(running.length);
    for (const process of running) expect((await process.stop()).code).toBe(0);
  });

  it('arrives when the server is killed before it sends the message', timeout, async () => {
    await open();
    const first = await yard.start(['start']);
    await prepare();
    await cross();
    await first.kill();
    expect(receiver.calls).toEqual([]);
    await yard.start(['start']);
    await expectArrived();
  });

  it('arrives with the same id when the sender is killed while it waits for the receiver', timeout, async () => {
    await open();
    const first = await yard.start(['start']);
    await prepare();
    receiver.answer(() => undefined);
    await cross();
    await until(() => receiver.calls.length > 0, 30, 'the first call');
    await first.kill();
    receiver.answer();
    await yard.start(['start']);
    await expectArrived();
    expect(receiver.calls.length).toBeGreaterThan(1);
  });

  it('is sent by another process if the sender is killed', timeout, async () => {
    await open();
    await yard.start(['serve']);
    const worker = await yard.start(['worker', '--region', '1']);
    await prepare();
    receiver.answer(() => undefined);
    await cross();
    await until(() => receiver.calls.length > 0, 30, 'the first call');
    await worker.kill();
    receiver.answer();
    await expectArrived();
  });

  it('arrives when PostgreSQL is killed before delivery', timeout, async () => {
    await open();
    await yard.start(['start']);
    await prepare();
    await cross();
    process.kill(yard.pids().postgres!, 'SIGKILL');
    await expectArrived();
  });
});

describe.skipIf(!requires('python3-aiosmtpd'))(skipReason('python3-aiosmtpd') ?? 'with a mail server', () => {
  it(
    'an alert arrives as e-mail with both parts and the figures, after a retry while the mail server was down',
    timeout,
    async () => {
      const probe = await startSmtpServer();
      await probe.stop();
      await open({ CLOUDYARD_SMTP_URL: probe.url, CLOUDYARD_SMTP_FROM: 'Cloudyard <alerts@example.com>' });
      const server = await yard.start(['start']);
      expect(server.stdout()).toContain(`e-mail is sent through ${new URL(probe.url).host}`);
      await yard.patch('/cloudyard/v1/clients/1', { emails: ['ops@example.org'] });
      await yard.patch('/cloudyard/v1/clients/1/quotas', { region_id: 1, sfs_count_limit: 2, sfs_size_limit: 100 });
      await cross();
      const mail = async () => (await yard.get('/cloudyard/v1/clients/1/notifications')).body.results[0]?.deliveries[0];
      await until(async () => (await mail())?.attempt_count > 0, 30, 'an attempt');
      expect(await mail()).toMatchObject({ channel: 'email', state: 'pending', target: 'ops@example.org' });
      const smtp = await startSmtpServer(Number(new URL(probe.url).port));
      await until(async () => (await mail()).state === 'delivered', 60, 'the mail');
      const { id } = await onlyNotification();
      const [message = ''] = smtp.messages();
      expect(headersOf(message)).toMatchObject({
        'message-id': `<${id}@example.com>`,
        from: 'Cloudyard <alerts@example.com>',
        to: 'ops@example.org',
        subject: expect.stringContaining('80'),
        'content-type': expect.stringContaining('multipart/alternative'),
      });
      expect(message).toContain('sfs_count');
      expect(message).toContain('<table>');
      await smtp.stop();
    },
  );
});

describe('cloudyard quota audit', () => {
  it('exits 0 when the counters match the rows, 1 when they differ, and 0 after a repair', timeout, async () => {
    await open();
    await yard.start(['start']);
    await cross();
    expect(await yard.run(['quota', 'audit'])).toMatchObject({
      code: 0,
      stdout: 'All counters match the rows.\n',
    });
    await yard.sql(`update quota_counters set usage = 7 where kind = 'sfs_count'`);
    const found = await yard.run(['quota', 'audit']);
    expect(found).toMatchObject({ code: 1, stderr: expect.stringContaining('--repair') });
    expect(found.stdout).toContain('1\t1\tsfs_count\t7\t2');
    expect((await yard.run(['quota', 'audit', '--repair'])).code).toBe(0);
    expect((await yard.run(['quota', 'audit'])).code).toBe(0);
    expect((await yard.run(['quota', 'audit', '--fix'])).code).toBe(2);
  });
});
