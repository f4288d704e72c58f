/** Webhooks: allowed URLs, request headers, and handling of responses. */
import { createHmac, randomUUID } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/webhook-receiver.ts';
import { aCertificate } from '../../resources/secrets/test-certificates.ts';
import type { WebhookCall } from '../delivery.ts';
import type { DriverError } from '../driver.ts';
import { createWebhookDriver } from './driver.ts';
import { refusalOfAddress } from '../public-address.ts';
import { errorOfUrl, refusalOfUrl } from './allowed-url.ts';

/** Addresses of names in order of lookups; the last one repeats. */
const names = vi.hoisted(() => new Map<string, string[]>());
const next = vi.hoisted(() => (host: string): LookupAddress[] => {
  const answers = names.get(host) ?? [];
  const address = answers.length > 1 ? answers.shift()! : answers[0];
  return address === undefined ? [] : [{ address, family: address.includes(':') ? 6 : 4 }];
});
vi.mock('../name-resolution.ts', () => ({ addressesOf: async (host: string) => next(host) }));

const signal = new AbortController().signal;
const now = () => new Date('2026-11-20T10:00:00.500Z');
const permissive = createWebhookDriver({ allowPrivate: true, now });
const strict = createWebhookDriver({ allowPrivate: false, now });
const call = (url: string, changes: Partial<WebhookCall> = {}): WebhookCall => ({
  id: randomUUID(),
  url,
  secret: 'a secret of ours',
  body: '{"text":"grüße"}',
  ...changes,
});

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(() => receiver.stop());
beforeEach(() => {
  receiver.answer();
  receiver.calls.length = 0;
});

describe('an address', () => {
  it.each([
    '0.0.0.0 127.0.0.1 127.9.9.9 10.1.2.3 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 192.0.0.1 198.18.0.1',
    '224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8',
    '64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1 fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd00::1 ff02::1 100::1',
    '168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254',
    'nonsense',
  ])('of %s is refused', (addresses) => {
    for (const address of addresses.split(' '))
      expect([address, refusalOfAddress(address)]).not.toEqual([address, null]);
  });

  it('of the public internet is allowed', () => {
    for (const address of ['8.8.8.8', '93.184.216.34', '2606:4700::1111']) expect(refusalOfAddress(address)).toBeNull();
  });
});

describe('a URL', () => {
  it.each([
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'example.com/hook',
    'https://',
    'https://user:password@example.com/',
    'https://example.com/#fragment',
    'https://exa mple.com/',
  ])('such as %s is invalid', (url) => expect(errorOfUrl(url)).toMatch(/^must/));

  it.each([
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '[::1]',
    '[::ffff:7f00:1]',
    '0',
    '169.254.169.254',
  ])('with the host %s is refused', async (host) => {
    expect(await refusalOfUrl(`http://${host}/`)).toContain('not on the public internet');
    await expect(strict.send(call(`http://${host}:${receiver.port}/`), signal)).rejects.toMatchObject({
      retryable: true,
      customerMessage: expect.stringContaining('not on the public internet'),
    });
    expect(receiver.calls).toEqual([]);
  });

  it('with a name of a private address is refused; a name that does not resolve is accepted', async () => {
    names.set('inside.test', ['10.0.0.1']);
    expect(await refusalOfUrl('https://inside.test/')).toBe(
      'inside.test resolves to 10.0.0.1, which is not on the public internet (private)',
    );
    expect(await refusalOfUrl('https://nowhere.test/')).toBeNull();
  });

  it('with a name that later resolves to a private address is refused at delivery', async () => {
    names.set('rebinding.test', ['8.8.8.8', '127.0.0.1']);
    expect(await refusalOfUrl('http://rebinding.test/')).toBeNull();
    await expect(strict.send(call(`http://rebinding.test:${receiver.port}/`), signal)).rejects.toMatchObject({
      customerMessage: expect.stringContaining('127.0.0.1, which is not on the public internet'),
    });
    expect(receiver.calls).toEqual([]);
  });

  it('with a private address is called if the operator allows it', async () => {
    names.set('inside.test', ['127.0.0.1']);
    await permissive.send(call(`http://127.0.0.1:${receiver.port}/a?b=c`), signal);
    expect(receiver.calls.map(({ path }) => path)).toEqual(['/a?b=c']);
  });
});

describe('a call', () => {
  it('has its id, the time, and a signature of the time and the body', async () => {
    const sent = call(receiver.url);
    await permissive.send(sent, signal);
    const { headers, body } = receiver.calls[0]!;
    expect(body).toBe(sent.body);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'cloudyard-id': sent.id,
      'cloudyard-timestamp': String(Date.parse('2026-11-20T10:00:00Z') / 1000),
    });
    const expected = createHmac('sha256', sent.secret)
      .update(`${headers['cloudyard-timestamp']}.${body}`)
      .digest('hex');
    expect(headers['cloudyard-signature']).toBe(`v1=${expected}`);
  });

  it.each([
    [201, true, null],
    [204, true, null],
    [301, false, true],
    [307, false, true],
    [400, false, true],
    [404, false, true],
    [410, false, false],
    [500, false, true],
  ])('with a %i response is delivered: %s, retryable: %s', async (status, delivered, retryable) => {
    receiver.answer((response) => response.writeHead(status, { location: receiver.url }).end());
    const sending = permissive.send(call(receiver.url), signal);
    if (delivered) expect((await sending).answer).toBe(`answered ${status}`);
    else
      await expect(sending).rejects.toMatchObject({ retryable, customerMessage: expect.stringContaining(`${status}`) });
    expect(receiver.calls).toHaveLength(1);
  });

  const dateIn = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString();
  it.each<[string, number, () => object]>([
    ['a number', 120, () => ({ 'retry-after': '120' })],
    ['a date', 120, () => ({ 'retry-after': dateIn(120) })],
    ['a date in the past', 0, () => ({ 'retry-after': dateIn(-120) })],
    ['another text', 0, () => ({ 'retry-after': 'soon' })],
    ['nothing', 0, () => ({})],
  ])(
    'with a 429 response and %s in Retry-After is not retryable earlier than after %i s',
    async (_what, seconds, headers) => {
      receiver.answer((response) => response.writeHead(429, { ...headers() }).end());
      const failure = await permissive.send(call(receiver.url), signal).catch((error: unknown) => error);
      expect(failure).toMatchObject({ retryable: true });
      expect((failure as DriverError).minRetrySeconds).toBeLessThanOrEqual(seconds);
      expect((failure as DriverError).minRetrySeconds).toBeGreaterThan(seconds - 5);
    },
  );

  it('stores only the beginning of a response, without control characters', async () => {
    receiver.answer((response) => response.writeHead(200).end(`\0a\r\nb${'x'.repeat(1_000_000)}`));
    const { answer } = await permissive.send(call(receiver.url), signal);
    expect(answer).toMatch(/^answered 200: a bx+$/);
    expect(answer.length).toBeLessThanOrEqual(500);
  });

  it.each([
    ['the path', 'Cannot POST /hooks/T0123456789?key=s3cret-key&code=a%2Bb%2Fc%3Dxyz', 'Cannot POST [redacted]'],
    ['a part of the path', 'no hook T0123456789', 'no hook [redacted]'],
    ['a parameter', 'invalid key "s3cret-key"', 'invalid key "[redacted]"'],
    ['an encoded parameter', 'POST /hooks?a=1&amp;code=a%2Bb%2Fc%3Dxyz', 'POST /hooks?a=1&amp;code=[redacted]'],
    ['the text of an encoded parameter', 'invalid code a+b/c=xyz', 'invalid code [redacted]'],
    ['the secret', 'expected a secret of ours', 'expected [redacted]'],
    ['a header', 'invalid token "t0ken"', 'invalid token "[redacted]"'],
    [
      'the beginning of the path where it is cut off',
      `${'x'.repeat(475)} /hooks/T0123`,
      `${'x'.repeat(475)} [redacted]`,
    ],
  ])('stores no response with %s', async (_what, text, stored) => {
    receiver.answer((response) => response.writeHead(404).end(text));
    const headers = { authorization: 'Bearer t0ken' };
    const url = `http://127.0.0.1:${receiver.port}/hooks/T0123456789?key=s3cret-key&code=a%2Bb%2Fc%3Dxyz`;
    await expect(permissive.send(call(url, { headers }), signal)).rejects.toMatchObject({
      message: `answered 404: ${stored}`,
      customerMessage: `answered 404: ${stored}`,
    });
  });

  it('is delivered by a 2xx response, also if its body does not end', async () => {
    const over = new AbortController();
    receiver.answer((response) => {
      response.writeHead(200).write('so far');
      setTimeout(() => over.abort(), 2000);
    });
    expect(await permissive.send(call(receiver.url), over.signal)).toEqual({ answer: 'answered 200: so far' });
  });

  it('without a response times out, and can be aborted', async () => {
    const over = new AbortController();
    receiver.answer(() => over.abort());
    await expect(permissive.send(call(receiver.url), over.signal)).rejects.toMatchObject({ retryable: true });
    receiver.answer(() => undefined);
    const began = performance.now();
    await expect(permissive.send(call(receiver.url), signal)).rejects.toMatchObject({
      retryable: true,
      customerMessage: 'no answer within 10 s',
    });
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  it('to a receiver that changes the protocol instead of responding is retryable', async () => {
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n';
    receiver.answer(({ socket }) => void socket!.write(upgrade));
    await expect(permissive.send(call(receiver.url), signal)).rejects.toMatchObject({
      retryable: true,
      customerMessage: 'the receiver closed the connection without a response',
    });
  });

  it('by HTTPS to a receiver without TLS has a readable error', async () => {
    await expect(permissive.send(call(receiver.url.replace('http:', 'https:')), signal)).rejects.toMatchObject({
      retryable: true,
      customerMessage: 'TLS failed: wrong version number',
    });
  });

  it('by HTTPS to a receiver whose certificate is not trusted says so, without advice about the options of Node', async () => {
    const { pem, keyPem } = aCertificate();
    const server = createTlsServer({ cert: pem, key: keyPem });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await expect(permissive.send(call(url), signal)).rejects.toMatchObject({
      retryable: true,
      customerMessage: expect.stringMatching(/^[\w -]*certificate$/),
    });
    server.close();
  });

  it('to a name that does not resolve is retryable', async () => {
    await expect(strict.send(call('http://nowhere.test/'), signal)).rejects.toMatchObject({
      retryable: true,
      customerMessage: expect.stringContaining('nowhere.test'),
    });
  });
});
