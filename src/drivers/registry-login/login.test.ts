/** Login verification against real registries and against misbehaving servers. */
import { createSign, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { aCertificate } from '../../resources/secrets/test-certificates.ts';
import { requires, skipReason } from '../../../test/requires.ts';
import { isInNetworks } from '../../platform/network-address.ts';
import { refusalOfAddress } from '../public-address.ts';
import { challengeOf } from './challenge.ts';
import { createVerifyLogin } from './login.ts';
import { login, password, startRegistry, startTestServer } from './test-registry.ts';

const inside = createVerifyLogin({ networks: ['127.0.0.0/8', '::1/128'], isOwn: () => false });
const outside = createVerifyLogin({ networks: [], isOwn: () => false });
const credentials = { login, password };
const wrong = { login, password: 'wrong-canary-1234' };

let testServer: Awaited<ReturnType<typeof startTestServer>>;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cloudyard-login-'));
  testServer = await startTestServer();
});
afterAll(async () => {
  await testServer.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  testServer.requests.length = 0;
});

const runs = requires('docker-registry');
describe.skipIf(!runs)(skipReason('docker-registry') ?? 'a real registry', () => {
  it('with a password file accepts the correct password and refuses others', async () => {
    const registry = await startRegistry(join(folder, 'htpasswd'));
    const { authority } = registry;
    expect(await inside({ authority }, credentials)).toEqual({
      outcome: 'accepted',
      message: `${authority} accepts the login and password`,
    });
    const refused = { outcome: 'refused', message: `${authority} refuses the login or password` };
    expect(await inside({ authority }, wrong)).toEqual(refused);
    expect(await inside({ authority }, { login: 'nobody', password })).toEqual(refused);
    expect(await outside({ authority }, credentials)).toMatchObject({
      outcome: 'not_allowed',
      message: expect.stringContaining('127.0.0.1 is not on the public internet'),
    });
    const own = createVerifyLogin({ networks: [], isOwn: (host) => host === authority });
    expect(await own({ authority }, credentials)).toMatchObject({ outcome: 'accepted' });
    await registry.stop();
    expect(await inside({ authority }, credentials)).toMatchObject({
      outcome: 'unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('with a token server accepts the token for the correct password', async () => {
    const issuer = aCertificate({ name: 'issuer' });
    const bundle = join(folder, 'bundle.pem');
    writeFileSync(bundle, issuer.pem);
    const realm = `http://${testServer.authority}/token?keep=this`;
    const registry = await startRegistry(join(folder, 'token'), { realm, bundle });
    const expected = `Basic ${Buffer.from(`${login}:${password}`).toString('base64')}`;
    testServer.answer((request, response) => {
      if (request.headers.authorization !== expected) return void response.writeHead(401).end(password);
      response.end(JSON.stringify({ token: tokenOf(issuer) }));
    });
    const { authority } = registry;
    expect(await inside({ authority }, credentials)).toMatchObject({ outcome: 'accepted' });
    expect(testServer.requests[0]!.url).toBe(`/token?keep=this&service=test&account=${login}&client_id=cloudyard`);
    expect(await inside({ authority }, wrong)).toMatchObject({ outcome: 'refused' });
    await registry.stop();
  });
});

/** A token in the format of distribution: signed by the certificate in its header. */
function tokenOf({ pem, keyPem }: { pem: string; keyPem: string }): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = Math.floor(Date.now() / 1000);
  const header = { typ: 'JWT', alg: 'ES256', x5c: [new X509Certificate(pem).raw.toString('base64')] };
  const claims = { iss: 'test', sub: login, aud: 'test', exp: now + 60, nbf: now - 60, iat: now, jti: 'x', access: [] };
  const signed = `${encode(header)}.${encode(claims)}`;
  const signature = createSign('sha256').update(signed).sign({ key: keyPem, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

describe('a server that is not a registry', () => {
  const verify = () => inside({ authority: testServer.authority }, credentials);
  const challengeWith = (challenge: string) =>
    testServer.answer(
      (_request, response) => void response.writeHead(401, { 'www-authenticate': challenge }).end(password),
    );

  it.each([404, 403, 204, 301])('gets no password if it responds to /v2/ with %i', async (status) => {
    testServer.answer(
      (_request, response) => void response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(),
    );
    expect(await verify()).toMatchObject({ outcome: 'no_registry', message: expect.stringContaining(String(status)) });
    expect(testServer.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it.each([
    '',
    'Digest realm="x"',
    'Negotiate',
    'Bearer',
    'Bearer realm="nonsense"',
    'Bearer realm="file:///etc/passwd"',
  ])('gets no password if its challenge is %j', async (challenge) => {
    challengeWith(challenge);
    expect(await verify()).toMatchObject({ outcome: 'no_registry' });
    expect(testServer.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it('is reported as not_asked if it requires no login', async () => {
    testServer.answer((_request, response) => void response.end('{}'));
    expect(await verify()).toMatchObject({ outcome: 'not_asked' });
  });

  it('cannot redirect the password to a forbidden address or over plain HTTP', async () => {
    challengeWith('Bearer realm="http://10.0.0.1/token",service="x"');
    expect(await verify()).toMatchObject({ outcome: 'not_allowed', message: expect.stringContaining('10.0.0.1') });
    // No request is sent to this address.
    challengeWith('Bearer realm="http://8.8.8.8:1/token",service="x"');
    expect(await verify()).toMatchObject({
      outcome: 'not_allowed',
      message: expect.stringContaining('without encryption'),
    });
    challengeWith('Bearer realm="http://me:too@127.0.0.1/token"');
    expect(await verify()).toMatchObject({ outcome: 'no_registry' });
  });

  it('is reported without the password if its token server returns no token', async () => {
    for (const [status, text] of [
      [200, '{}'],
      [200, password],
      [200, '{"token":"a b"}'],
      [302, ''],
    ] as const) {
      testServer.answer((request, response) => {
        if (request.url!.startsWith('/token')) return void response.writeHead(status, { location: '/other' }).end(text);
        const challenge = `Bearer realm="http://${testServer.authority}/token"`;
        response.writeHead(401, { 'www-authenticate': challenge }).end();
      });
      const verdict = await verify();
      expect(verdict).toMatchObject({ outcome: 'no_registry', message: expect.stringContaining(String(status)) });
      expect(verdict.message).not.toContain(password);
    }
  });

  it.each([429, 500, 503])('is reported as unreachable if it responds with %i', async (status) => {
    testServer.answer((_request, response) => void response.writeHead(status).end(password));
    expect(await verify()).toMatchObject({ outcome: 'unreachable', message: expect.stringContaining(String(status)) });
    testServer.answer((request, response) => {
      if (request.url!.startsWith('/token')) return void response.writeHead(status).end(password);
      response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${testServer.authority}/token"` }).end();
    });
    const verdict = await verify();
    expect(verdict).toMatchObject({ outcome: 'unreachable', message: expect.stringContaining('token server') });
    expect(verdict.message).not.toContain(password);
  });

  it('is handled if it closes the connection, changes the protocol or sends an endless response', async () => {
    testServer.answer((request) => void request.socket.destroy());
    expect(await verify()).toMatchObject({ outcome: 'unreachable' });
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n';
    testServer.answer(({ socket }) => void socket.write(upgrade));
    expect(await verify()).toMatchObject({
      outcome: 'unreachable',
      message: expect.stringContaining('without a response'),
    });
    testServer.answer((_request, response) => {
      response.writeHead(200);
      const more = () => void (response.destroyed || response.write('x'.repeat(65_536), more));
      more();
    });
    expect(await verify()).toMatchObject({ outcome: 'not_asked' });
  });

  it('is reported as unreachable if its name does not resolve', async () => {
    const nowhere = await inside({ authority: 'nowhere.invalid' }, credentials);
    expect(nowhere).toEqual({ outcome: 'unreachable', message: 'the name nowhere.invalid does not resolve' });
    expect(await outside({ authority: 'localhost' }, credentials)).toMatchObject({ outcome: 'not_allowed' });
  });

  it('gets no request if its certificate is not trusted', async () => {
    const { pem, keyPem } = aCertificate();
    const requests: unknown[] = [];
    const server = createTlsServer({ cert: pem, key: keyPem }, (request, response) => {
      requests.push(request.url);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const message = expect.stringMatching(/certificate/);
    expect(await inside({ authority }, credentials)).toMatchObject({ outcome: 'unreachable', message });
    expect(requests).toEqual([]);
    server.close();
  });
});

describe('an address', () => {
  it('outside the public internet is refused, unless the operator allows its network', () => {
    for (const address of [
      ...['127.0.0.1', '10.0.0.1', '192.168.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1'],
      ...['::1', '::ffff:127.0.0.1', 'fc00::1', 'fe80::1%eth0', '64:ff9b::7f00:1', '2002:7f00:1::', 'nonsense'],
    ]) {
      expect([address, refusalOfAddress(address)]).not.toEqual([address, null]);
    }
    for (const address of ['8.8.8.8', '2606:4700::1111']) expect(refusalOfAddress(address)).toBeNull();
    expect(isInNetworks('10.1.2.3', ['192.168.0.0/16', '10.0.0.0/8'])).toBe(true);
    expect(isInNetworks('::ffff:10.1.2.3', ['10.0.0.0/8'])).toBe(true);
    expect(isInNetworks('11.0.0.1', ['10.0.0.0/8'])).toBe(false);
    expect(isInNetworks('fd00::1', ['10.0.0.0/8', 'fd00::/8'])).toBe(true);
    expect(isInNetworks('nonsense', ['10.0.0.0/8'])).toBe(false);
  });
});

describe('a challenge', () => {
  it.each([
    [
      'Bearer realm="https://a/token",service="s",scope="x y"',
      'bearer',
      { realm: 'https://a/token', service: 's', scope: 'x y' },
    ],
    ['bearer Realm = "https://a" , service=s', 'bearer', { realm: 'https://a', service: 's' }],
    ['Basic realm="x", Bearer realm="https://a"', 'bearer', { realm: 'https://a' }],
    ['BASIC', 'basic', {}],
    ['Basic realm="a \\"quoted\\" b"', 'basic', { realm: 'a "quoted" b' }],
  ])('%s is parsed', (header, scheme, parameters) => expect(challengeOf(header)).toEqual({ scheme, parameters }));
});
