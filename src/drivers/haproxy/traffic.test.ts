/** Every protocol and feature, seen by clients and members of a real HAProxy. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { freePort } from '../../../test/free-port.ts';
import type { DesiredListener, DesiredLoadBalancer, DesiredPersistence } from '../load-balancer.ts';
import { until } from '../../../test/until.ts';
import type { HaproxyDriver } from './driver.ts';
import {
  balancer,
  effectOf,
  freeAddress,
  listener,
  member,
  pool,
  testHost,
  type TestHost,
  withListener,
} from './test-host.ts';
import {
  ask,
  authority,
  type Authority,
  certificateOf,
  closeMembers,
  crypt,
  firstBytesMember,
  httpMember,
  httpsMember,
  stream,
  tcpMember,
  tlsAnswer,
} from './test-members.ts';

const signal = new AbortController().signal;
const persistence = (changes: Partial<DesiredPersistence>): DesiredPersistence => ({
  ...{ type: 'SOURCE_IP', cookieName: null, timeoutSeconds: null, granularity: null },
  ...changes,
});

describe.skipIf(!requires('haproxy', 'openssl', 'root'))(
  skipReason('haproxy', 'openssl', 'root') ?? 'through HAProxy',
  () => {
    let host: TestHost;
    let driver: HaproxyDriver;
    let ca: Authority;
    const apply = async (desired: DesiredLoadBalancer) => {
      await driver.apply(desired, signal);
      return desired;
    };
    const members = async (...names: string[]) => {
      const made = await Promise.all(names.map((name) => httpMember(name)));
      return made.map(({ port }) => member(port));
    };
    const tcpMembers = async (...names: string[]) => {
      const made = await Promise.all(names.map((name) => tcpMember(name)));
      return made.map(({ port }) => member(port));
    };
    const names = async (address: string, times: number, headers: Record<string, string> = {}) => {
      const seen: (string | null)[] = [];
      for (let time = 0; time < times; time += 1) seen.push((await ask(address, headers)).name);
      return seen;
    };

    beforeAll(async () => {
      host = testHost();
      driver = host.driver();
      await driver.start();
      ca = authority(host.dataDir);
    });
    afterEach(closeMembers);
    afterAll(() => driver.stop().finally(host.cleanUp));

    describe('algorithms', () => {
      it('balances by weight', async () => {
        const [a, b] = await members('a', 'b');
        const { address } = await apply(balancer({ members: [{ ...a!, weight: 3 }, b!] }));
        const seen = await names(address, 8);
        expect(seen.filter((name) => name === 'a')).toHaveLength(6);
      });

      it('prefers the member with the fewest connections', async () => {
        const two = await tcpMembers('a', 'b');
        const changes = { algorithm: 'LEAST_CONNECTIONS', protocol: 'TCP', members: two } as const;
        const { address } = await apply(balancer(changes, { protocol: 'TCP' }));
        const streams = [];
        for (let at = 0; at < 4; at += 1) {
          streams.push(stream(address));
          await streams.at(-1)!.name;
        }
        const seen = await Promise.all(streams.map(({ name }) => name));
        expect(seen.filter((name) => name === 'a')).toHaveLength(2);
        for (const { socket } of streams) socket.destroy();
      });

      it('keeps a source address on its member', async () => {
        const many = await tcpMembers('a', 'b', 'c', 'd');
        const changes = { algorithm: 'SOURCE_IP', protocol: 'TCP', members: many } as const;
        const { address } = await apply(balancer(changes, { protocol: 'TCP' }));
        const from = async (source: string) => {
          const one = stream(address, 80, source);
          const name = await one.name;
          one.socket.destroy();
          return name;
        };
        expect(new Set([await from('127.0.0.5'), await from('127.0.0.5'), await from('127.0.0.5')]).size).toBe(1);
        const all = new Set<string | null>();
        for (let at = 1; at < 40; at += 1) all.add(await from(`127.0.1.${at}`));
        expect(all.size).toBeGreaterThan(2);
      });

      it('uses backups only without other members, and no member of weight 0', async () => {
        const [a, b, c] = await members('a', 'b', 'c');
        const desired = await apply(balancer({ members: [a!, { ...b!, backup: true }, { ...c!, weight: 0 }] }));
        expect(new Set(await names(desired.address, 4))).toEqual(new Set(['a']));
        await apply({
          ...desired,
          pools: [
            {
              ...desired.pools[0]!,
              members: [
                { ...a!, enabled: false },
                { ...b!, backup: true },
              ],
            },
          ],
        });
        expect(new Set(await names(desired.address, 4))).toEqual(new Set(['b']));
      });
    });

    describe('protocols', () => {
      it('balances bytes', async () => {
        const { address } = await apply(
          balancer({ protocol: 'TCP', members: await tcpMembers('a') }, { protocol: 'TCP' }),
        );
        const one = stream(address);
        expect(await one.name).toBe('a');
        expect(await one.echoes('hello')).toBe(true);
        one.socket.destroy();
      });

      it.each(['PROXY', 'PROXYV2'] as const)('sends the client address by %s', async (protocol) => {
        const { port } = await firstBytesMember();
        const { address } = await apply(balancer({ protocol, members: [member(port)] }, { protocol: 'TCP' }));
        const one = stream(address, 80, '127.0.0.77');
        let text = '';
        one.socket.on('data', (part) => (text += String(part)));
        one.socket.write('x');
        await until(() => one.socket.closed, 5, 'answer');
        const bytes = Buffer.from(text, 'hex');
        if (protocol === 'PROXY') expect(bytes.toString()).toMatch(/^PROXY TCP4 127\.0\.0\.77 /);
        else expect(bytes.subarray(0, 12).toString('hex')).toBe('0d0a0d0a000d0a515549540a');
      });

      it('passes HTTPS through to the certificate of the member', async () => {
        const { port } = await httpsMember('a', ca.issue('member.test'));
        const { address } = await apply(
          balancer({ protocol: 'HTTPS', members: [member(port)] }, { protocol: 'HTTPS' }),
        );
        expect(await certificateOf(address, 'member.test')).toBe('member.test');
      });

      it('responds with 503 or closes without a pool, and does not listen when disabled', async () => {
        const http = await apply(balancer({}, { defaultPoolId: null }));
        expect((await ask(http.address)).status).toBe(503);
        const tcp = await apply(balancer({ protocol: 'TCP' }, { protocol: 'TCP', defaultPoolId: null }));
        expect(await stream(tcp.address).name).toBeNull();
        await apply(withListener(http, { enabled: false }));
        await expect(ask(http.address)).rejects.toThrow(/ECONNREFUSED/);
      });

      it('serves metrics of this load balancer and no other', async () => {
        const made = balancer({ members: await members('a') });
        const desired = { ...made, listeners: [...made.listeners, listener({ protocol: 'PROMETHEUS', port: 9101 })] };
        const other = await apply(balancer());
        await apply(desired);
        await ask(desired.address);
        const url = `http://${desired.address}:9101/metrics`;
        const metrics = await (await fetch(url)).text();
        expect(metrics).toContain(
          `haproxy_frontend_http_requests_total{proxy="listener_${made.listeners[0]!.id}"} 1\n`,
        );
        expect(metrics).toContain(`server="member_${made.pools[0]!.members[0]!.id}"`);
        expect(metrics).not.toContain(other.listeners[0]!.id);
        expect((await fetch(`${url}?x=1`)).status).toBe(200);
        expect((await fetch(`http://${desired.address}:9101/`)).status).toBe(404);
      });

      it('serves metrics over TLS by server name to users with a password only', async () => {
        const metrics = listener({
          protocol: 'PROMETHEUS',
          port: 9101,
          certificate: { id: 'm', pem: ca.issue('metrics.test') },
          sniCertificates: [{ id: 'o', pem: ca.issue('other.test') }],
          users: [{ name: 'scraper', encryptedPassword: crypt('secret') }],
        });
        const made = balancer({ members: await members('a') });
        const { address } = await apply({ ...made, listeners: [...made.listeners, metrics] });
        // Not synchronous: this process serves the metrics.
        const scrape = async (...options: string[]) =>
          (await promisify(execFile)('curl', ['-sk', '-w', '%{http_code} %{http_version}', ...options])).stdout;
        const url = `https://${address}:9101/metrics`;
        expect(await scrape(url)).toMatch(/401 1\.1$/);
        expect(await scrape('-u', 'scraper:wrong', url)).toMatch(/401 1\.1$/);
        const shown = await scrape('-u', 'scraper:secret', url);
        expect(shown).toMatch(/200 1\.1$/);
        expect(shown).toContain(`haproxy_frontend_http_requests_total{proxy="listener_${made.listeners[0]!.id}"}`);
        // The second request finds the checked password in the cache.
        expect(await scrape('-u', 'scraper:secret', url)).toMatch(/200 1\.1$/);
        expect(await scrape('-u', 'scraper:secret', `https://${address}:9101/`)).toMatch(/404 1\.1$/);
        expect(await certificateOf(address, 'other.test', 9101)).toBe('other.test');
        expect(await certificateOf(address, undefined, 9101)).toBe('metrics.test');
        await expect(fetch(`http://${address}:9101/metrics`)).rejects.toThrow();
      });

      it('supports IPv6', async () => {
        const port = await freePort();
        const { address } = await apply(balancer({ members: await members('a') }, { port }, { address: '::1' }));
        expect((await ask(address, {}, '/', port)).name).toBe('a');
      });
    });

    describe('TLS', () => {
      const certificate = (id: string, name: string) => ({ id, pem: ca.issue(name) });

      it('uses the certificate of the name, and the default one otherwise', async () => {
        const front: Partial<DesiredListener> = {
          protocol: 'TERMINATED_HTTPS',
          certificate: certificate('d', 'default.test'),
          sniCertificates: [certificate('1', 'one.test'), certificate('2', 'two.test')],
          insertXForwarded: true,
        };
        const { address } = await apply(balancer({ members: await members('a') }, front));
        expect(await certificateOf(address, 'one.test')).toBe('one.test');
        expect(await certificateOf(address, 'two.test')).toBe('two.test');
        expect(await certificateOf(address, 'three.test')).toBe('default.test');
        expect(await certificateOf(address)).toBe('default.test');
        const answer = await tlsAnswer(address);
        expect(answer).toMatch(/"x-forwarded-proto":"https"/);
      });

      it('encrypts traffic to members, and verifies them with a CA bundle', async () => {
        const { port } = await httpsMember('a', ca.issue('good.test'));
        const made = balancer({ protocol: 'HTTPS', members: [member(port)] });
        const withTls = (changes: object) => ({ ...made, pools: [{ ...made.pools[0]!, ...changes }] });
        await apply(made);
        expect((await ask(made.address)).name).toBe('a');
        await apply(withTls({ caBundle: ca.ca }));
        expect((await ask(made.address)).name).toBe('a');
        await apply(withTls({ caBundle: authority(host.dataDir, 'other').ca }));
        expect((await ask(made.address)).status).toBe(503);
        await apply(withTls({ caBundle: ca.ca, revocationList: ca.revoke() }));
        expect((await ask(made.address)).name).toBe('a');
        await apply(withTls({ caBundle: ca.ca, revocationList: ca.revoke('good.test') }));
        expect((await ask(made.address)).status).toBe(503);
      });

      it('sends its client certificate to members, also to those added later', async () => {
        const { port } = await httpsMember('a', ca.issue('member.test'), ca.ca);
        const clientCertificate = certificate('c', 'client.test');
        const made = await apply(balancer({ protocol: 'HTTPS', caBundle: ca.ca, clientCertificate }));
        const grown = { ...made, pools: [{ ...made.pools[0]!, members: [member(port)] }] };
        expect(await effectOf(driver, () => driver.apply(grown, signal))).toMatchObject({ reloads: 0 });
        expect((await ask(made.address)).shown).toBe('client.test');
      });
    });

    describe('listeners', () => {
      it('limit the allowed networks', async () => {
        const made = balancer({ protocol: 'TCP', members: await tcpMembers('a') }, { protocol: 'TCP' });
        const from = (source: string) => stream(made.address, 80, source).name;
        await apply(withListener(made, { allowedNetworks: ['127.0.3.0/24', '10.0.0.0/8', 'fd00::/8'] }));
        expect([await from('127.0.3.9'), await from('127.0.0.9')]).toEqual(['a', null]);
        await apply(withListener(made, { allowedNetworks: [] }));
        expect(await from('127.0.3.9')).toBeNull();
        const hundred = Array.from({ length: 100 }, (_, at) => `10.0.${at}.0/24`);
        await apply(withListener(made, { allowedNetworks: [...hundred, '127.0.0.9'] }));
        expect(await from('127.0.0.9')).toBe('a');
      });

      it('limit the number of connections', async () => {
        const made = { protocol: 'TCP', members: await tcpMembers('a') } as const;
        const { address } = await apply(balancer(made, { protocol: 'TCP', connectionLimit: 2 }));
        const [one, two] = [stream(address), stream(address)];
        expect([await one.name, await two.name]).toEqual(['a', 'a']);
        const three = stream(address);
        let isServed = false;
        void three.name.then(() => (isServed = true));
        await once(three.socket, 'connect');
        // HAProxy serves the others meanwhile.
        for (let at = 0; at < 8; at += 1) expect(await one.echoes(`${at}.`)).toBe(true);
        expect(isServed).toBe(false);
        one.socket.destroy();
        expect(await three.name).toBe('a');
      });

      it('insert X-Forwarded headers, or leave them unchanged', async () => {
        const made = await apply(balancer({ members: await members('a') }, { insertXForwarded: true }));
        const { seen } = await ask(made.address);
        expect(seen).toMatchObject({
          'x-forwarded-for': '127.0.0.1',
          'x-forwarded-port': '80',
          'x-forwarded-proto': 'http',
        });
        await apply(withListener(made, { insertXForwarded: false }));
        expect((await ask(made.address)).seen).not.toHaveProperty('x-forwarded-for');
      });

      it('authenticate users with any name', async () => {
        const name = `it's "a" name; #1 \\ $x %[src]`;
        const users = [{ name, encryptedPassword: crypt('secret') }];
        const { address } = await apply(balancer({ members: await members('a') }, { users }));
        const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
        expect((await ask(address)).status).toBe(401);
        expect((await ask(address, basic(`${name}:wrong`))).status).toBe(401);
        expect((await ask(address, basic(`${name}:secret`))).name).toBe('a');
      });

      it('close idle connections after their timeout', async () => {
        const members = await tcpMembers('a');
        const { address } = await apply(
          balancer({ protocol: 'TCP', members }, { protocol: 'TCP', timeoutClientData: 300 }),
        );
        const one = stream(address);
        await one.name;
        await until(() => !one.isOpen(), 3, 'closed');
      });
    });

    describe('persistence', () => {
      it.each([
        [null, /^SRV_[0-9a-f]{8}=\w+$/],
        ['sticky', /^sticky=\w+$/],
      ])('HTTP_COOKIE %s: by an inserted cookie, also for members added at run time', async (cookieName, form) => {
        const [a, b, c] = await members('a', 'b', 'c');
        const sticky = persistence({ type: 'HTTP_COOKIE', cookieName });
        const made = await apply(balancer({ members: [a!], persistence: sticky }));
        const grown = { ...made, pools: [{ ...made.pools[0]!, members: [a!, b!, c!] }] };
        expect(await effectOf(driver, () => driver.apply(grown, signal))).toMatchObject({ reloads: 0 });
        const seen = new Set<string | null>();
        for (let time = 0; time < 6; time += 1) {
          const first = await ask(made.address);
          const cookie = String(first.headers['set-cookie']?.[0]).split(';')[0] ?? '';
          expect(cookie).toMatch(form);
          expect(new Set(await names(made.address, 3, { cookie }))).toEqual(new Set([first.name]));
          seen.add(first.name);
        }
        expect(seen.size).toBe(3);
      });

      it('APP_COOKIE: by the cookie of the application, over a reload', async () => {
        const three = await members('a', 'b', 'c');
        const made = await apply(
          balancer({ members: three, persistence: persistence({ type: 'APP_COOKIE', cookieName: 'app' }) }),
        );
        const first = await ask(made.address, {}, '/login');
        const cookie = String(first.headers['set-cookie']?.[0]).split(';')[0] ?? '';
        const stuck = async () =>
          expect(new Set(await names(made.address, 6, { cookie }))).toEqual(new Set([first.name]));
        await stuck();
        await host.peersSynced();
        await apply(withListener(made, { connectionLimit: 77 }));
        await host.tableFilled(made.pools[0]!.id);
        await stuck();
      });

      it('SOURCE_IP: by the address of the client, over a reload', async () => {
        const many = await tcpMembers('a', 'b', 'c', 'd', 'e');
        const sticky = persistence({});
        const made = await apply(
          balancer({ protocol: 'TCP', members: many, persistence: sticky }, { protocol: 'TCP' }),
        );
        const from = async (source: string) => {
          const one = stream(made.address, 80, source);
          const name = await one.name;
          one.socket.destroy();
          return name;
        };
        const first = await from('127.0.5.1');
        const others = async () => new Set([await from('127.0.5.1'), await from('127.0.5.1'), await from('127.0.5.1')]);
        expect(await others()).toEqual(new Set([first]));
        await host.peersSynced();
        await apply(withListener(made, { connectionLimit: 77 }));
        await host.tableFilled(made.pools[0]!.id);
        expect(await others()).toEqual(new Set([first]));
      });
    });

    it('shares a pool between listeners', async () => {
      const behind = pool({ members: await members('a') });
      const fronts = [80, 8080].map((port) => listener({ port, defaultPoolId: behind.id }));
      const desired = await apply({ ...balancer(), address: freeAddress(), listeners: fronts, pools: [behind] });
      expect((await ask(desired.address, {}, '/', 8080)).name).toBe('a');
      expect((await ask(desired.address)).name).toBe('a');
    });
  },
);
