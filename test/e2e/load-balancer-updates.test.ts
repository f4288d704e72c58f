/** Updates of pools, listeners and certificates under load must not disturb clients of the load balancer. */
import { Agent } from 'node:http';
import { get as getSecurely } from 'node:https';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import {
  authority,
  type Authority,
  closeMembers,
  stream,
  type Stream,
  tcpMember,
} from '../../src/drivers/haproxy/test-members.ts';
import { openYard, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { requestTo, startTraffic, type Traffic } from '../traffic.ts';
import {
  balancers,
  changesOf,
  expectProxyEqualsRows,
  listeners,
  type Members,
  openMembers,
  pools,
  v2,
} from './balanced.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const parts = ['haproxy', 'openssl', 'root'] as const;
const secrets = '/cloud/v1/secrets/1/1';

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'updates under load', () => {
  let yard: Yard;
  let members: Members;
  const traffics: Traffic[] = [];
  const traffic = (one: () => Promise<void>) => {
    const started = startTraffic(one);
    traffics.push(started);
    return started;
  };

  beforeAll(async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy' });
    await yard.start(['start']);
    members = await openMembers();
  });
  afterEach(async () => {
    for (const each of traffics.splice(0)) await each.stop();
  });
  afterAll(async () => {
    yard?.cleanUp();
    members?.close();
    await closeMembers();
  });

  const finished = async (answer: Parameters<Yard['ended']>[0]) => {
    const task = await yard.ended(answer);
    expect(task).toMatchObject({ state: 'FINISHED', error: null });
    return task;
  };
  const aBalancer = async (given: object[]) => {
    const { created_resources: made } = await finished(await yard.post(balancers, { name: 'busy', listeners: given }));
    const id = made.loadbalancers[0];
    const address: string = (await yard.get(`${balancers}/${id}`)).body.vip_address;
    return { id, address, listeners: made.listeners as string[], pools: made.pools as string[] };
  };
  const idsOf = async (pool: string) =>
    (await yard.get(`${pools}/${pool}`)).body.members.map(({ id }: { id: string }) => id) as string[];

  it('one hundred updates of pools break no stream, fail no request and need no reload', async () => {
    const [web, raw] = [await freePort(), await freePort()];
    const echo = await tcpMember('kept');
    const kept = { address: '127.0.0.1', protocol_port: echo.port };
    const pool = (protocol: string, members: object[]) => ({
      name: 'a pool',
      protocol,
      lb_algorithm: 'ROUND_ROBIN',
      members,
    });
    const { address, pools: made } = await aBalancer([
      { name: 'web', protocol: 'HTTP', protocol_port: web, pools: [pool('HTTP', [members.member(0)])] },
      { name: 'raw', protocol: 'TCP', protocol_port: raw, pools: [pool('TCP', [kept])] },
    ]);
    const [webPool, rawPool] = made as [string, string];
    const streams = Array.from({ length: 50 }, (): Stream => stream(address, raw));
    expect(new Set(await Promise.all(streams.map(({ name }) => name)))).toEqual(new Set(['kept']));
    const before = { changes: await changesOf(yard), web: await idsOf(webPool), raw: await idsOf(rawPool) };
    const agent = new Agent({ keepAlive: true });
    const load = [traffic(() => requestTo(address, web, agent)), traffic(() => requestTo(address, web))];

    for (let i = 0; i < 50; i++) {
      // The kept member changes its position and weight. Of the others one stays, one is removed, and one is added.
      const weight = 1 + (i % 3);
      const moving = [members.member(i + 1), members.member(i + 2)];
      const web = [moving[0], { ...members.member(0), weight }, moving[1]];
      await finished(await yard.patch(v2(`${pools}/${webPool}`), { members: web }));
      // A removed member may be switched off after it has responded to earlier requests, which a busy machine delays.
      if (i > 0) setTimeout(() => members.retire(i), 1000);
      const raw = [{ ...kept, weight }, ...moving];
      await finished(await yard.patch(v2(`${pools}/${rawPool}`), { members: raw }));
      if (i % 10 === 0) await expectAllEcho(streams, `round ${i}\n`);
    }

    await Promise.all(load.map((each) => each.stop()));
    expect(load.flatMap((each) => each.failures())).toEqual([]);
    for (const each of load) expect(each.answered()).toBeGreaterThan(200);
    await expectAllEcho(streams, 'still here\n');
    for (const each of streams) each.socket.destroy();
    agent.destroy();
    const after = await changesOf(yard);
    expect(after.reload).toBe(before.changes.reload);
    expect(after.runtime - before.changes.runtime).toBeGreaterThanOrEqual(200);
    expect(await idsOf(webPool)).toEqual(expect.arrayContaining(before.web));
    expect(await idsOf(rawPool)).toEqual(expect.arrayContaining(before.raw));
    await expectProxyEqualsRows(yard);
  });

  it('twenty updates of listeners and certificates fail no new connection and no request on a kept connection', async () => {
    const [web, secure, coming] = [await freePort(), await freePort(), await freePort()];
    const trusted = authority(join(yard.folder, 'authority'));
    const first = await certificate(trusted, 'one.example');
    const pool = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [members.member(0)] };
    const made = await aBalancer([
      { name: 'web', protocol: 'HTTP', protocol_port: web, pools: [pool] },
      { name: 'tls', protocol: 'TERMINATED_HTTPS', protocol_port: secure, secret_id: first, pools: [pool] },
    ]);
    const { address, id } = made;
    const [webListener, tlsListener] = made.listeners as [string, string];
    const agent = new Agent({ keepAlive: true });
    const load = [
      traffic(() => requestTo(address, web)),
      traffic(() => requestTo(address, web, agent)),
      traffic(() => securelyTo(address, secure, trusted.ca, 'one.example')),
    ];
    const before = await changesOf(yard);

    for (let i = 0; i < 5; i++) {
      // A new certificate of the same name, and another one for SNI.
      const again = await certificate(trusted, 'one.example');
      const other = await certificate(trusted, `other-${i}.example`);
      const tls = { secret_id: again, sni_secret_id: [other] };
      await finished(await yard.patch(v2(`${listeners}/${tlsListener}`), tls));
      await securelyTo(address, secure, trusted.ca, `other-${i}.example`);
      const limits = { connection_limit: 1000 + i, timeout_client_data: 40_000 + i };
      await finished(await yard.patch(v2(`${listeners}/${webListener}`), limits));
      const another = { name: 'coming', protocol: 'HTTP', protocol_port: coming, load_balancer_id: id };
      const task = await finished(await yard.post(listeners, another));
      await finished(await yard.delete(`${listeners}/${task.created_resources.listeners[0]}`));
    }

    await Promise.all(load.map((each) => each.stop()));
    expect(load.flatMap((each) => each.failures())).toEqual([]);
    for (const each of load) expect(each.answered()).toBeGreaterThan(100);
    agent.destroy();
    expect((await changesOf(yard)).reload - before.reload).toBe(20);
    await expectProxyEqualsRows(yard);
  });

  async function expectAllEcho(streams: Stream[], text: string): Promise<void> {
    const echoed = await Promise.all(streams.map((each) => each.echoes(text)));
    expect(echoed.filter(Boolean)).toHaveLength(streams.length);
  }

  async function certificate(trusted: Authority, name: string): Promise<string> {
    const [, chain = '', key = ''] = /^([^]*?-----END CERTIFICATE-----\n)([^]*)$/.exec(trusted.issue(name)) ?? [];
    const payload = { certificate: chain, certificate_chain: '', private_key: key };
    const task = await finished(await yard.post(v2(secrets), { name, payload }));
    return task.created_resources.secrets[0];
  }
});

/** Sends one request on a new TLS connection. The certificate must have this name. */
function securelyTo(address: string, port: number, ca: string, servername: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = getSecurely({ host: address, port, ca, servername, agent: false, timeout: 5000 }, (response) => {
      response.resume().once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`status ${response.statusCode}`));
      });
    });
    sent.once('error', reject).once('timeout', () => sent.destroy(new Error('no response within 5 s')));
  });
}
