/** Attacks by one tenant, or by its clients, on the listeners of other tenants, through a real HAProxy. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { HaproxyDriver } from '../../src/drivers/haproxy/driver.ts';
import { violationsOf } from '../../src/drivers/haproxy/validation.ts';
import {
  balancer,
  listener,
  member,
  testHost,
  type TestHost,
  withListener,
} from '../../src/drivers/haproxy/test-host.ts';
import {
  ask,
  authority,
  closeMembers,
  httpMember,
  stream,
  tcpMember,
  udpMember,
} from '../../src/drivers/haproxy/test-members.ts';
import type { DesiredLoadBalancer } from '../../src/drivers/load-balancer.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';
import {
  hangingMember,
  countingUdpMember,
  sendOnce,
  udpAnswer,
  manyStreams,
  statusOf,
  basic,
  sha256Of,
  costliestHash,
  childrenOf,
  workerPid,
  cpuSeconds,
} from './balancer-attacks.ts';

const signal = new AbortController().signal;
const maxConnections = 8_000;
const [attacker, victim] = [{ tenant: '666' }, { tenant: '1' }];

describe.skipIf(!requires('haproxy', 'openssl'))(
  skipReason('haproxy', 'openssl') ?? 'one HAProxy of two tenants',
  () => {
    let host: TestHost;
    let driver: HaproxyDriver;
    let neighbour: DesiredLoadBalancer;
    let quietHost: TestHost;
    let quietDriver: HaproxyDriver;
    /** Of the same member, in a HAProxy that nobody attacks. */
    let quiet: DesiredLoadBalancer;
    let pem: string;
    let opened: { destroy(): void }[] = [];
    const apply = async (desired: DesiredLoadBalancer) => {
      await driver.apply(desired, signal);
      return desired;
    };
    const aMember = async () => member((await httpMember('a')).port);

    beforeAll(async () => {
      host = testHost();
      pem = authority(`${host.dataDir}/authority`).issue('a.example');
      driver = host.driver({ maxConnections });
      await driver.start();
      const { port } = await httpMember('victim');
      neighbour = await apply(balancer({ members: [member(port)] }, {}, victim));
      quietHost = testHost();
      quietDriver = quietHost.driver();
      await quietDriver.start();
      quiet = balancer({ members: [member(port)] }, {}, victim);
      await quietDriver.apply(quiet, signal);
    });
    afterEach(async () => {
      for (const each of opened) each.destroy();
      opened = [];
    });
    afterAll(async () => {
      await driver.stop().finally(host.cleanUp);
      await quietDriver?.stop().finally(quietHost.cleanUp);
      await closeMembers();
    });

    /** Opens connections. Returns how many HAProxy accepted and did not close, when it has no more to accept or close. */
    const hold = async (targets: { address: string; port: number; from?: string }[]) => {
      let open = 0;
      const made = targets.map(
        ({ address, port, from }) =>
          new Promise<void>((resolve) => {
            const socket = createConnection({ host: address, port, ...(from && { localAddress: from }) }, () => {
              open += 1;
              resolve();
            });
            opened.push(socket);
            socket.on('error', () => resolve()).on('close', () => (open -= 1));
            // Connections in the backlog count as connected.
            setTimeout(resolve, 10_000).unref();
          }),
      );
      await Promise.all(made);
      let last = '';
      const isSettled = async () => {
        const before = last;
        last = `${open} of ${await processConnections()}`;
        return last === before;
      };
      await until(isSettled, 30, 'no more changes');
      return open;
    };
    const secured = () => ({ protocol: 'TERMINATED_HTTPS', port: 443, certificate: { id: 'one', pem } }) as const;
    const sources = (count: number) => (at: number) => `127.250.0.${1 + (at % count)}`;
    /** Milliseconds; Infinity without an answer of the member. */
    const answerMs = async ({ address }: DesiredLoadBalancer): Promise<number> => {
      const began = performance.now();
      const { name } = await ask(address, {}, '/').catch(() => ({ name: null }));
      return name === 'victim' ? performance.now() - began : Infinity;
    };
    /**
     * The neighbour answers within 100 ms, or on a slow or busy machine within ten times the time of a HAProxy that nobody
     * attacks. Compares the answers of this rank among several, 0 for the fastest.
     */
    const expectPrompt = async ({ tries = 5, rank = 0 } = {}) => {
      const [attacked, unattacked]: [number[], number[]] = [[], []];
      for (let at = 0; at < tries; at += 1) {
        attacked.push(await answerMs(neighbour));
        unattacked.push(await answerMs(quiet));
      }
      const [own, usual] = [attacked, unattacked].map((times) => times.sort((a, b) => a - b)[rank]!) as [
        number,
        number,
      ];
      expect(usual).toBeLessThan(Infinity);
      expect(own).toBeLessThan(Math.max(100, 10 * usual));
    };
    const processConnections = async () => Number(/^CurrConns: (\d+)/m.exec(await host.ask('show info'))?.[1]);

    describe('connections', () => {
      it('8,050 idle connections to one listener do not delay a neighbour', async () => {
        const { address } = await apply(
          balancer({ members: [await aMember()] }, { connectionLimit: 100_000 }, attacker),
        );
        const from = sources(9);
        await hold(Array.from({ length: 8_050 }, (_, at) => ({ address, port: 80, from: from(at) })));
        await expectPrompt();
        expect(await processConnections()).toBeLessThan(maxConnections / 2 + 100);
      });

      it('8,050 idle connections to twenty listeners of a tenant do not delay a neighbour', async () => {
        const listeners = Array.from({ length: 20 }, (_, at) => listener({ port: 7_000 + at }));
        const { address } = await apply(balancer({}, {}, { ...attacker, listeners, pools: [] }));
        const from = sources(9);
        await hold(Array.from({ length: 8_050 }, (_, at) => ({ address, port: 7_000 + (at % 20), from: from(at) })));
        await expectPrompt();
      });

      it('one source address does not take all connections of a listener', async () => {
        const { address } = await apply(
          balancer({ members: [await aMember()] }, { connectionLimit: -1 + 100_000 }, attacker),
        );
        await hold(Array.from({ length: 4_500 }, () => ({ address, port: 80, from: '127.250.1.1' })));
        expect(await processConnections()).toBeLessThan(maxConnections / 3);
        expect((await ask(address)).name).toBe('a');
      });

      it('HTTP/2 streams do not take all connections to members', async () => {
        const hanging = await hangingMember();
        opened.push({ destroy: hanging.close });
        const { address } = await apply(balancer({ members: [member(hanging.port)] }, secured(), attacker));
        const refused = { count: 0 };
        for (let at = 0; at < 60; at += 1) opened.push(await manyStreams(address, 100, refused));
        await until(() => hanging.open() + refused.count >= 5_900, 30, 'all streams refused or at the member');
        expect(hanging.open()).toBeLessThanOrEqual(maxConnections / 2);
        await expectPrompt();
      });

      it('endless request headers time out after 10 s', async () => {
        const made = balancer({ members: [await aMember()] }, { timeoutClientData: 3_600_000 }, attacker);
        const { address } = await apply(made);
        const slow = createConnection({ host: address, port: 80 }, () => slow.write('GET / HTTP/1.1\r\nHost: a\r\n'));
        opened.push(slow);
        const drip = setInterval(() => slow.write('x: y\r\n'), 1_000);
        try {
          await new Promise<void>((resolve, reject) => {
            setTimeout(() => reject(new Error('still open after 30 s')), 30_000).unref();
            slow.on('error', () => undefined).on('data', () => undefined);
            slow.once('close', resolve);
          });
        } finally {
          clearInterval(drip);
        }
      });
    });

    describe('passwords', () => {
      /** Up to 640 requests a second from 32 addresses. The rate is limited, because this process also measures. */
      const flood = (address: string, seconds: number, credentials: () => string) => {
        const answers = new Map<number, number>();
        const agent = new Agent({ keepAlive: true, maxSockets: 64 });
        opened.push(agent);
        const end = performance.now() + seconds * 1_000;
        const one = async (from: string) => {
          while (performance.now() < end) {
            const status = await statusOf(address, agent, credentials(), from);
            answers.set(status, (answers.get(status) ?? 0) + 1);
            await sleep(100);
          }
        };
        return { answers, ended: Promise.all(Array.from({ length: 64 }, (_, at) => one(sources(32)(at)))) };
      };
      const wrong = () => basic(`user:${randomBytes(48).toString('hex')}`);

      it('a flood of wrong passwords against the costliest hash does not slow a neighbour', async () => {
        const users = [{ name: 'user', encryptedPassword: costliestHash() }];
        const { address } = await apply(balancer({ members: [await aMember()] }, { users }, attacker));
        const before = cpuSeconds(workerPid(await host.ask('show info')));
        const { answers, ended } = flood(address, 5, wrong);
        await until(() => answers.has(429), 30, 'a refusal');
        await expectPrompt({ tries: 10, rank: 6 });
        await ended;
        // Half of the checks that a process makes in a second, for five full seconds and one partial.
        expect(answers.get(401) ?? 0).toBeLessThanOrEqual(70);
        expect(answers.get(429) ?? 0).toBeGreaterThan(70);
        expect(cpuSeconds(workerPid(await host.ask('show info'))) - before).toBeLessThan(8);
      });

      it('a flood of wrong passwords does not lock out known users or another tenant', async () => {
        const users = [{ name: 'user', encryptedPassword: sha256Of('right') }];
        const { address } = await apply(balancer({ members: [await aMember()] }, { users }, attacker));
        const other = await apply(balancer({ members: [await aMember()] }, { users }, { tenant: '2' }));
        const right = { authorization: basic('user:right') };
        expect((await ask(address, right)).name).toBe('a');
        const { answers, ended } = flood(address, 4, wrong);
        await until(() => answers.has(429), 30, 'a refusal');
        for (let at = 0; at < 5; at += 1) expect((await ask(address, right)).name).toBe('a');
        expect((await ask(other.address, right)).name).toBe('a');
        await ended;
      });

      it('a verified password is forgotten when the password changes, not at a reload', async () => {
        const users = [{ name: 'user', encryptedPassword: sha256Of('right') }];
        const made = await apply(balancer({ members: [await aMember()] }, { users }, attacker));
        const right = { authorization: basic('user:right') };
        const status = async (headers: Record<string, string>) => (await ask(made.address, headers)).status;
        await until(async () => (await status(right)) === 200, 5, 'verified');
        await host.peersSynced();
        await apply(withListener(made, { connectionLimit: 77 }));
        for (let at = 0; at < 60; at += 1) expect(await status(right)).toBe(200);
        await apply(withListener(made, { users: [{ name: 'user', encryptedPassword: sha256Of('new') }] }));
        expect(await status(right)).toBe(401);
        expect(await status({ authorization: basic('user:new') })).toBe(200);
      });

      it('unknown user names and long passwords cost nothing', async () => {
        const users = [{ name: 'user', encryptedPassword: sha256Of('right') }];
        const { address } = await apply(balancer({ members: [await aMember()] }, { users }, { tenant: '3' }));
        const long = basic(`user:${'x'.repeat(500)}`);
        for (const credentials of [long, basic('nobody:right'), 'Basic %', 'Bearer x']) {
          for (let at = 0; at < 30; at += 1)
            expect((await ask(address, { authorization: credentials })).status).toBe(401);
        }
        expect((await ask(address, { authorization: basic('user:right') })).status).toBe(200);
      });

      it('expensive hashes are refused', () => {
        const refused = (hash: string) =>
          violationsOf(balancer({}, { users: [{ name: 'user', encryptedPassword: hash }] })).length > 0;
        const accepted = [
          ...['$2b$06$', '$2y$05$'].map((start) => start + 'a'.repeat(53)),
          `$5$rounds=5000$s$${'a'.repeat(43)}`,
          `$6$s$${'a'.repeat(86)}`,
          `$1$s$${'a'.repeat(22)}`,
        ];
        expect(accepted.filter(refused)).toEqual([]);
        const bombs = ['$2b$07$', '$2y$10$', '$2b$31$', '$5$rounds=5001$s$', '$6$rounds=999999999$s$'];
        const others = ['$y$j9T$salt$', '$gy$j9T$salt$', '$7$CU..../....salt$', '$sha1$400000$salt$', '$3$$'];
        expect([...bombs, ...others].filter((hash) => !refused(hash))).toEqual([]);
      });
    });

    it('connections held over many reloads do not leave one process each', async () => {
      const other = testHost();
      const churning = other.driver({ oldWorkers: 4 });
      await churning.start();
      try {
        const made = balancer({ protocol: 'TCP', members: [member((await tcpMember('a')).port)] }, { protocol: 'TCP' });
        for (let at = 1; at <= 10; at += 1) {
          await churning.apply(withListener(made, { connectionLimit: 100 + at }), signal);
          const held = stream(made.address);
          opened.push(held.socket);
          expect(await held.name).toBe('a');
        }
        const oldWorkers = async () => childrenOf(other.pid()).length - 1;
        await until(async () => (await oldWorkers()) <= 5, 15, 'at most the four allowed and one that is ending');
        expect(await oldWorkers()).toBeGreaterThan(0);
      } finally {
        await churning.stop().finally(other.cleanUp);
      }
    });

    describe('TLS', () => {
      it('a client cannot choose an expensive key exchange', async () => {
        const { address } = await apply(balancer({ members: [await aMember()] }, secured(), attacker));
        const handshake = (...options: string[]) => {
          try {
            execFileSync('openssl', ['s_client', '-connect', `${address}:443`, ...options], {
              input: '',
              stdio: 'pipe',
            });
            return true;
          } catch {
            return false;
          }
        };
        expect(handshake('-tls1_3')).toBe(true);
        expect(handshake('-tls1_2')).toBe(true);
        expect(handshake('-tls1_3', '-groups', 'ffdhe8192')).toBe(false);
        expect(handshake('-tls1_2', '-cipher', 'DHE')).toBe(false);
      });
    });
  },
);

describe.skipIf(!requires('haproxy', 'nginx', 'root'))(
  skipReason('haproxy', 'nginx', 'root') ?? 'one nginx of two tenants',
  () => {
    let host: TestHost;
    let driver: HaproxyDriver;
    beforeAll(async () => {
      host = testHost();
      driver = host.driver();
      await driver.start();
    });
    afterAll(() => driver.stop().finally(host.cleanUp));

    it('a UDP flood from many ports and addresses does not take the sessions of a neighbour', async () => {
      const [flooded, own] = [await countingUdpMember(), await udpMember('victim')];
      const udp = { protocol: 'UDP', port: 5353 } as const;
      const of = (port: number, changes: object, tenant: object) =>
        balancer({ protocol: 'UDP', members: [member(port)] }, { ...udp, ...changes }, tenant);
      const target = of(flooded.port, { timeoutMemberData: 86_400_000, connectionLimit: 1_000_000 }, attacker);
      const neighbour = of(own.port, {}, victim);
      for (const each of [target, neighbour]) await driver.apply(each, signal);
      try {
        for (let batch = 0; batch < 190; batch += 1) {
          await Promise.all(Array.from({ length: 50 }, (_, at) => sendOnce(target.address, `127.250.0.${1 + at}`)));
          // A socket buffers about 250 unread datagrams.
          await sleep(10);
        }
        await until(() => flooded.sessions() > 1_000, 10, 'the flood is served');
        await until(() => udpAnswer(neighbour.address), 10, 'an answer of the neighbour');
      } finally {
        flooded.close();
        own.close();
      }
    });
  },
);
