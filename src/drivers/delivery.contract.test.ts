/** The contract of delivery drivers (delivery.ts), tested with each of them. */
import { createServer, type AddressInfo, type Server } from 'node:net';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import { headersOf, startSmtpServer } from '../../test/smtp-server.ts';
import { startWebhookReceiver } from '../../test/webhook-receiver.ts';
import type { DeliveryDriver, Email, WebhookCall } from './delivery.ts';
import { createSimulatedDeliveryDriver } from './simulated/delivery.ts';
import { createSmtpDriver } from './smtp/driver.ts';
import { createWebhookDriver } from './webhook/driver.ts';

interface Subject<Message> {
  driver: DeliveryDriver<Message>;
  message(): Message;
  /** Ids of received messages, with duplicates; null for a simulated driver. */
  arrived(): string[] | null;
  /** Stops the receiver. */
  stopReceiver(): Promise<void>;
  cleanUp(): Promise<void>;
}

const email = (): Email => ({
  id: randomUUID(),
  to: 'recipient@example.com',
  subject: 'quotas',
  text: 'plain',
  html: '<p>rich</p>',
});
const call = (url: string) => (): WebhookCall => ({ id: randomUUID(), url, secret: 'of the test', body: '{"a": "ü"}' });
const from = 'Cloudyard <alerts@example.com>';
const nothing = async () => undefined;

const simulated = <Message>(message: () => Message) => {
  return async (): Promise<Subject<Message>> => ({
    driver: createSimulatedDeliveryDriver<Message>('messages', 'it is a test', 'none'),
    message,
    arrived: () => null,
    stopReceiver: nothing,
    cleanUp: nothing,
  });
};

async function smtp(): Promise<Subject<Email>> {
  const server = await startSmtpServer();
  return {
    driver: createSmtpDriver({ url: server.url, from }),
    message: email,
    arrived: () => server.messages().map((message) => headersOf(message)['cloudyard-id']!),
    stopReceiver: server.stop,
    cleanUp: nothing,
  };
}

async function webhook(): Promise<Subject<WebhookCall>> {
  const receiver = await startWebhookReceiver();
  return {
    driver: createWebhookDriver({ allowPrivate: true, now: () => new Date() }),
    message: call(receiver.url),
    arrived: () => receiver.calls.map(({ headers }) => String(headers['cloudyard-id'])),
    stopReceiver: receiver.stop,
    cleanUp: nothing,
  };
}

contract('simulated, for e-mail', simulated(email));
contract('simulated, for webhooks', simulated(call('https://example.com/')));
contract('webhook', webhook);
const runsSmtp = requires('python3-aiosmtpd');
describe.skipIf(!runsSmtp)(skipReason('python3-aiosmtpd') ?? 'with a mail server', () => {
  contract('smtp', smtp);
});

function contract<Message extends { id: string }>(name: string, make: () => Promise<Subject<Message>>): void {
  describe(`delivery driver ${name}`, () => {
    const signal = new AbortController().signal;
    let subject: Subject<Message>;
    beforeAll(async () => {
      subject = await make();
    });
    afterAll(() => subject.cleanUp());

    it('is healthy and reports its status', () => {
      const { driver } = subject;
      expect(driver.status()).toMatchObject({ driver: driver.name, real: driver.real, healthy: true });
      expect(driver.status().detail).not.toBe('');
      if (!driver.real) expect(driver.status().remedy).toBeTruthy();
    });

    it('delivers a message and returns the response', async () => {
      const message = subject.message();
      expect((await subject.driver.send(message, signal)).answer).toMatch(subject.driver.real ? /\w+/ : /^not sent: /);
      const arrived = subject.arrived();
      if (arrived) expect(arrived.filter((id) => id === message.id)).toHaveLength(1);
    });

    it('repeats a message with the same id', async () => {
      const message = subject.message();
      await subject.driver.send(message, signal);
      await subject.driver.send(message, signal);
      const arrived = subject.arrived();
      if (arrived) expect(arrived.filter((id) => id === message.id)).toHaveLength(2);
    });

    it('handles many messages at once', async () => {
      const messages = Array.from({ length: 12 }, subject.message);
      await Promise.all(messages.map((message) => subject.driver.send(message, signal)));
      const arrived = subject.arrived();
      if (arrived) expect(arrived).toEqual(expect.arrayContaining(messages.map(({ id }) => id)));
    });

    it('does nothing for an aborted call', async () => {
      const message = subject.message();
      await expect(subject.driver.send(message, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      expect(subject.arrived() ?? []).not.toContain(message.id);
    });

    it('reports a retryable error with a message if the receiver is down', async () => {
      await subject.stopReceiver();
      if (!subject.driver.real) return;
      const failure = await subject.driver.send(subject.message(), signal).catch((error: unknown) => error);
      expect(failure).toMatchObject({ name: 'DriverError', retryable: true });
      expect((failure as { customerMessage: string }).customerMessage).toMatch(/\w+/);
    });
  });
}

describe.skipIf(!runsSmtp)(skipReason('python3-aiosmtpd') ?? 'the SMTP driver', () => {
  it('sends a text and an HTML part, and no text of a message gets into the headers', async () => {
    const server = await startSmtpServer();
    const driver = createSmtpDriver({ url: server.url, from });
    const id = randomUUID();
    const subject = 'x\r\nBcc: evil@example.com\r\n\r\nbody ü';
    await driver.send({ ...email(), id, subject, text: 'the text part', html: '<b>the HTML part</b>' }, neverAborted);
    const [message = ''] = server.messages();
    const headers = headersOf(message);
    expect(headers).toMatchObject({
      'message-id': `<${id}@example.com>`,
      from,
      to: 'recipient@example.com',
      'auto-submitted': 'auto-generated',
    });
    expect(headers['bcc']).toBeUndefined();
    expect(headers['x-rcptto'] ?? '').not.toContain('evil');
    expect(message).toContain('the text part');
    expect(message).toContain('<b>the HTML part</b>');
    expect(headers['content-type']).toContain('multipart/alternative');
    await server.stop();
  });

  it.each([
    ['550 no such user', false],
    ['550 <relay@relay.example>: no such user', false],
    ['451 come back later', true],
  ])('the reply "%s" is retryable: %s', async (answer, retryable) => {
    const server = await refusingSmtpServer(answer);
    const driver = createSmtpDriver({ url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, from });
    await expect(driver.send(email(), neverAborted)).rejects.toMatchObject({
      retryable,
      customerMessage: expect.stringContaining(answer),
    });
    expect(driver.status().healthy).toBe(true);
    server.close();
  });

  it.each([
    ['530 authentication required', 'MAIL'],
    // Without credentials.
    ['554 5.7.1 <a@example.com>: Relay access denied', 'RCPT'],
    ['550 relay not permitted', 'RCPT'],
    ['530 5.7.0 authentication required', 'RCPT'],
  ] as const)('is unhealthy, and retries, while the server refuses the sender: "%s" to %s', async (answer, command) => {
    const server = await refusingSmtpServer(answer, command);
    const driver = createSmtpDriver({ url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, from });
    await expect(driver.send(email(), neverAborted)).rejects.toMatchObject({ retryable: true });
    expect(driver.status()).toMatchObject({
      healthy: false,
      detail: expect.stringContaining(answer),
    });
    server.close();
  });

  it('aborts while the server does not respond, and sends nothing more', async () => {
    const closed = Promise.withResolvers<void>();
    const server = createServer((socket) => void socket.on('error', () => undefined).on('close', closed.resolve));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const driver = createSmtpDriver({ url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, from });
    const began = performance.now();
    await expect(driver.send(email(), AbortSignal.timeout(100))).rejects.toMatchObject({ retryable: true });
    await closed.promise;
    expect(performance.now() - began).toBeLessThan(5000);
    expect(driver.status().healthy).toBe(true);
    server.close();
  });

  it('retries, and is unhealthy, if the server is never silent and does not accept the message', async () => {
    const server = createServer((socket) => {
      const waiting = setInterval(() => socket.write('220-wait\r\n'), 50);
      socket.on('error', () => undefined).on('close', () => clearInterval(waiting));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const driver = createSmtpDriver({ url, from, limitMs: 500 });
    const late = 'the mail server did not accept the message within 0.5 s';
    await expect(driver.send(email(), neverAborted)).rejects.toMatchObject({ retryable: true, customerMessage: late });
    expect(driver.status()).toMatchObject({ healthy: false, detail: expect.stringContaining(late) });
    server.close();
  });

  it.each([
    ['alerts@example.com', 'alerts@example.com'],
    ['<alerts@example.com>', 'alerts@example.com'],
    ['Example, Inc. <alerts@example.com>', '"Example, Inc." <alerts@example.com>'],
    ['"Example, Inc." <alerts@example.com>', '"Example, Inc." <alerts@example.com>'],
    ['Alerts: Cloud (test); <alerts@example.com>', '"Alerts: Cloud (test);" <alerts@example.com>'],
    [
      String.raw`"The \"Cloud\" \\ Inc." <alerts@example.com>`,
      String.raw`"The \"Cloud\" \\ Inc." <alerts@example.com>`,
    ],
  ])('sends from %s', async (sender, shown) => {
    const server = await startSmtpServer();
    const message = email();
    await createSmtpDriver({ url: server.url, from: sender }).send(message, neverAborted);
    expect(headersOf(server.messages()[0]!)).toMatchObject({
      from: shown,
      'message-id': `<${message.id}@example.com>`,
      'x-mailfrom': 'alerts@example.com',
    });
    await server.stop();
  });

  it('names the reason if the server has no TLS', async () => {
    const server = await refusingSmtpServer('250 ok');
    const driver = createSmtpDriver({ url: `smtps://127.0.0.1:${(server.address() as AddressInfo).port}`, from });
    await expect(driver.send(email(), neverAborted)).rejects.toMatchObject({
      retryable: true,
      customerMessage: 'TLS failed: wrong version number',
    });
    server.close();
  });

  it('is unhealthy while its server is down, and its status shows no password', async () => {
    const driver = createSmtpDriver({ url: 'smtp://user:hunter2@127.0.0.1:1', from });
    await driver.send(email(), neverAborted).catch(() => undefined);
    expect(driver.status()).toMatchObject({ real: true, healthy: false });
    expect(JSON.stringify(driver.status())).not.toContain('hunter2');
  });
});

const neverAborted = new AbortController().signal;

/** An SMTP server that responds to RCPT TO, or to another command, with this line. */
function refusingSmtpServer(answer: string, refused = 'RCPT'): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('220 test\r\n');
    socket.on('data', (data) => {
      const command = data.toString().slice(0, 4).toUpperCase();
      if (command === 'QUIT') socket.end('221 bye\r\n');
      else socket.write(command === refused ? `${answer}\r\n` : '250 ok\r\n');
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
