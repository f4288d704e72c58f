/**
 * `kill -9` of every process during updates of pools. Traffic of an unchanged pool recovers, every accepted update is
 * executed, and ten seconds later HAProxy matches the rows.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { requestTo, startTraffic, type Traffic } from '../traffic.ts';
import { balancers, expectProxyEqualsRows, type Members, openMembers, pools, proxyOf, v2 } from './balanced.ts';
import { storm, type Storm } from './storm.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const parts = ['haproxy', 'root'] as const;
const poolCount = 6;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'during updates of pools', () => {
  let yard: Yard;
  let server: Running;
  let members: Members;
  let traffic: Traffic | null = null;
  let unchanged: { address: string; port: number };
  /** Ids of the pools. Each has its own load balancer, except the last two, which share one. */
  const ids: string[] = [];

  beforeAll(async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy' });
    server = await yard.start(['start']);
    members = await openMembers();
    const aBalancer = async (count: number) => {
      const ports = await Promise.all(Array.from({ length: count }, freePort));
      const listeners = ports.map((port) => ({
        name: 'web',
        protocol: 'HTTP',
        protocol_port: port,
        pools: [{ name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [members.member(0)] }],
      }));
      const task = await yard.ended(await yard.post(balancers, { name: 'a balancer', listeners }));
      expect(task).toMatchObject({ state: 'FINISHED', error: null });
      const { loadbalancers, pools } = task.created_resources;
      return { id: loadbalancers[0], pools, port: ports[0]! };
    };
    const { id, port } = await aBalancer(1);
    unchanged = { address: (await yard.get(`${balancers}/${id}`)).body.vip_address, port };
    for (const count of [...Array(poolCount - 2).fill(1), 2]) ids.push(...(await aBalancer(count)).pools);
  });
  afterEach(async () => {
    await traffic?.stop();
    traffic = null;
  });
  afterAll(() => {
    yard?.cleanUp();
    members?.close();
  });

  const update = (id: string, ns: number[]) =>
    yard.insist('PATCH', v2(`${pools}/${id}`), { members: ns.map((n) => members.member(n)) });

  /** Updates each pool `each` times, always with other members. */
  let version = 0;
  const updates = (each: number): Storm =>
    storm(
      Array.from({ length: each * ids.length }, (_, i) => () => {
        version += 1;
        return update(ids[i % ids.length]!, [0, 1 + (version % 200), 201 + (version % 100)]);
      }),
    );

  const request = () => requestTo(unchanged.address, unchanged.port);
  const startLoad = () => (traffic = startTraffic(request));
  /** Waits until 50 requests in a row succeed. */
  async function expectTrafficAgain(load: Traffic): Promise<void> {
    const asGood = async () => {
      const [answered, failed] = [load.answered(), load.failures().length];
      await until(() => load.answered() + load.failures().length - failed >= answered + 50, 60, 'more requests to end');
      return load.failures().length === failed;
    };
    await until(asGood, 60, 'traffic to recover');
  }

  /** Expects that all changes are executed within ten seconds of the restart and the last accepted change. */
  async function expectAllDone(changes: Storm): Promise<void> {
    const answers = await changes.answers;
    const since = performance.now();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    // An update whose response was lost is sent again and changes nothing.
    await Promise.all(answers.filter(({ body }) => body.tasks.length > 0).map((answer) => yard.ended(answer)));
    await expectProxyEqualsRows(yard);
    expect(performance.now() - since).toBeLessThan(10_000);
    expect(await yard.sql(`select id, state, error from tasks where state <> 'FINISHED'`)).toEqual([]);
    expect(await yard.sql('select id from load_balancers where observed_generation < generation')).toEqual([]);
  }

  it.each([
    ['master', async () => yard.pids().haproxy!],
    ['worker', async () => proxyOf(yard).worker()],
  ])('killing the %s process of HAProxy', async (_, victim) => {
    const load = startLoad();
    const changes = updates(10);
    await changes.reached(15);
    const pid = await victim();
    process.kill(pid, 'SIGKILL');
    await until(() => load.failures().length > 0, 60, 'traffic to fail');
    await expectTrafficAgain(load);
    await expectAllDone(changes);
  });

  it('killing the server interrupts no traffic', async () => {
    const load = startLoad();
    const changes = updates(10);
    await changes.reached(15);
    await server.kill();
    server = await yard.start(['start']);
    await expectAllDone(changes);
    expect(load.failures()).toEqual([]);
  });

  it('killing the server together with HAProxy', async () => {
    const load = startLoad();
    const changes = updates(10);
    await changes.reached(15);
    const { haproxy } = yard.pids();
    await server.kill();
    process.kill(haproxy!, 'SIGKILL');
    server = await yard.start(['start']);
    await expectTrafficAgain(load);
    await expectAllDone(changes);
  });

  it('killing PostgreSQL interrupts no traffic, and no request returns 500', async () => {
    const load = startLoad();
    const changes = updates(15);
    await changes.reached(15);
    const { postgres } = yard.pids();
    process.kill(postgres!, 'SIGKILL');
    await until(() => ![null, postgres].includes(yard.pids().postgres), 60, 'a new PostgreSQL');
    await changes.reached(50);
    process.kill(yard.pids().postgres!, 'SIGKILL');
    await expectAllDone(changes);
    expect(load.failures()).toEqual([]);
    expect(server.log().filter(({ msg, status }) => msg === 'request' && status === 500)).toEqual([]);
  });

  it('the API accepts updates after a worker is killed or stopped, and the next worker executes them', async () => {
    expect((await server.stop()).code).toBe(0);
    server = await yard.start(['serve']);
    const worker = await yard.start(['worker', '--region', '1']);
    const load = startLoad();
    const changes = updates(10);
    await changes.reached(15);
    await worker.kill();
    await changes.answers;
    const another = await yard.start(['worker', '--region', '1']);
    await expectAllDone(changes);
    // HAProxy keeps running over an orderly restart.
    const { haproxy } = yard.pids();
    const more = updates(2);
    another.signal('SIGTERM');
    expect((await another.ended).code).toBe(0);
    expect(yard.pids().haproxy).toBe(haproxy);
    await more.answers;
    const last = await yard.start(['worker', '--region', '1']);
    await expectAllDone(more);
    expect(yard.pids().haproxy).toBe(haproxy);
    expect(load.failures()).toEqual([]);
    await traffic?.stop();
    expect((await last.stop()).code).toBe(0);
    expect(yard.pids().haproxy).toBeNull();
    expect((await server.stop()).code).toBe(0);
    server = await yard.start(['start']);
  });

  it('twenty concurrent updates of one pool end in the order of acceptance, and the last one wins', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => update(ids[0]!, [0, 400 + i])));
    for (const answer of answers) expect(await yard.ended(answer)).toMatchObject({ state: 'FINISHED' });
    const tasks = await yard.sql<{ id: string; generation: string; finished_on: Date }>(
      'select id, generation, finished_on from tasks where id = any($1::uuid[]) order by generation',
      [answers.map(({ body }) => body.tasks[0])],
    );
    expect(tasks).toHaveLength(20);
    const ends = tasks.map(({ finished_on }) => finished_on.getTime());
    expect(ends).toEqual([...ends].sort((a, b) => a - b));
    const last = answers.findIndex(({ body }) => body.tasks[0] === tasks.at(-1)!.id);
    const addresses = [0, 400 + last].map((n) => members.member(n).address);
    const pool = (await yard.get(`${pools}/${ids[0]}`)).body;
    expect(pool.members.map(({ address }: { address: string }) => address)).toEqual(addresses);
    await expectProxyEqualsRows(yard);
  });
});
