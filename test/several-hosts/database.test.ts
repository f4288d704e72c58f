/**
 * PostgreSQL on three hosts, as docs/several-hosts.md installs it, fails while clients create volumes: nothing that was
 * acknowledged is lost, the counters match the rows, and every task ends.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { until } from '../until.ts';
import { requires } from '../requires.ts';
import { type SharedDatabase, startDatabase } from './database.ts';
import { expectGap } from './gaps.ts';
import { createLab, type Lab, type LabNode, labWorks } from './lab.ts';
import { type ApiClient, type Load, startClient, startLoad } from './load.ts';
import { runOn, startOn } from './servers.ts';

vi.setConfig({ testTimeout: 200_000, hookTimeout: 200_000 });

const works = requires('root', 'postgresql', 'patroni', 'etcd', 'haproxy', 'curl') && labWorks();
const creates = 15;
/** Without a create. */
const BAR_MS = 12_000;

describe.skipIf(!works)('a database on three hosts', () => {
  let lab: Lab;
  let database: SharedDatabase;
  let client: ApiClient;

  beforeAll(async () => {
    lab = await createLab({ hosts: 3, clients: 1 });
    database = await startDatabase(lab);
    for (const host of lab.hosts) await startCloudyard(host);
    client = startClient(lab.clients[0]!, database.cloudyardEnv(lab.hosts[0]!)['CLOUDYARD_BOOTSTRAP_TOKEN']!);
  });
  afterAll(() => lab?.remove());

  /** A region of one host, because this test needs no data plane. */
  const envOf = (host: LabNode) => ({
    ...database.cloudyardEnv(host),
    CLOUDYARD_REGIONS_FILE: `${root}/config/regions.yaml`,
    CLOUDYARD_VOLUME_DRIVER: 'simulated',
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
    CLOUDYARD_REGISTRY_DRIVER: 'simulated',
    CLOUDYARD_CONSOLE: '0',
  });
  const startCloudyard = async (host: LabNode) => {
    await startOn(host, ['serve'], envOf(host));
    await startOn(host, ['worker', '--region', '1'], envOf(host));
  };
  const loadOn = (hosts: LabNode[]): Load =>
    startLoad({
      client,
      urls: hosts.map(({ address }) => `http://${address}:8080`),
      path: '/cloud/v1/volumes/1/1',
      body: (name) => ({ name, source: 'new-volume', size: 1 }),
    });

  /** Runs `fail` in the middle of creates on these hosts, and checks what remains. */
  const failDuring = async (name: string, hosts: LabNode[], fail: () => Promise<void>, isPromoted = false) => {
    const load = loadOn(hosts);
    await until(() => load.acknowledged.length >= creates, 60, 'creates before the failure');
    await fail();
    const promoted = isPromoted ? await database.promotedAt(hosts) : null;
    const before = load.acknowledged.length;
    await until(() => load.acknowledged.length >= before + creates, 90, 'creates after the failure');
    const gap = await load.stop();
    const next = load.acknowledgedAt.find((at) => promoted !== null && at > promoted);
    const reconnected = next === undefined ? '' : `, ${Math.round(next - promoted!)} ms after the promotion`;
    console.log(`${name}: ${Math.round(gap)} ms without a create${reconnected}`);
    expectGap({ longestGapMs: gap }, BAR_MS);
    expect([...load.refusals].filter((status) => status !== 0 && status !== 503)).toEqual([]);

    const [host] = hosts;
    const rows = await database.sql(host!, 'select name from volumes');
    expect(rows).toEqual(expect.arrayContaining(load.acknowledged));
    expect(new Set(rows).size).toBe(rows.length);
    const open = `select id from tasks where state in ('NEW', 'RUNNING')`;
    await until(async () => (await database.sql(host!, open)).length === 0, 60, 'the end of all tasks');
    expect(await database.sql(host!, `select state, error from tasks where state <> 'FINISHED'`)).toEqual([]);
    expect(await runOn(host!, ['quota', 'audit'], envOf(host!))).toMatch(/match/);
  };

  it('passes the checks of doctor', async () => {
    const [host] = lab.hosts;
    const output = await runOn(host!, ['doctor'], envOf(host!)).catch(({ stdout }: { stdout: string }) => stdout);
    expect(output).toMatch(/replication of PostgreSQL.*1 synchronous of 2 standbys/);
  });

  it('loses nothing when the host of the primary dies, and takes it back as a standby', async () => {
    const primary = await database.primary();
    const others = lab.hosts.filter((host) => host !== primary);
    await failDuring('the host of the primary dies', others, () => primary.die(), true);
    expect(await database.primary()).not.toBe(primary);
    await primary.boot();
    await database.start(primary);
    await database.replicating(lab.hosts);
    await startCloudyard(primary);
  });

  it('serves from a host whose clock is 5 minutes ahead', async () => {
    const host = lab.hosts[0]!;
    const env = { ...envOf(host), CLOUDYARD_PORT: '8081', CLOCK_SKEW_MS: String(300_000) };
    await startOn(host, ['serve'], env, [join(import.meta.dirname, 'skewed-clock.mjs')]);
    const body = { name: 'short', role: 'reader', expires_at: new Date(Date.now() + 120_000).toISOString() };
    const api = `http://${host.address}`;
    const created = await client.request('POST', `${api}:8080/cloudyard/v1/tokens`, { body });
    const short = (JSON.parse(created.body) as { token: string }).token;
    // By its own clock the token has expired.
    for (const port of [8080, 8081]) {
      const { status } = await client.request('GET', `${api}:${port}/cloud/v1/projects`, { token: short });
      expect({ port, status }).toEqual({ port, status: 200 });
    }
  });

  it('loses nothing when the server of the primary is killed', async () => {
    const primary = await database.primary();
    await failDuring('the postmaster of the primary is killed', lab.hosts, async () => {
      process.kill(database.postmaster(primary), 'SIGKILL');
    });
    await database.replicating(lab.hosts);
  });

  it('loses nothing when no host sees another one', async () => {
    await failDuring('the hosts do not see each other', lab.hosts, async () => {
      await lab.isolate(lab.hosts);
      await until(async () => !(await database.hasPrimary(lab.hosts)), 60, 'no primary');
      await lab.heal();
    });
    await database.replicating(lab.hosts);
  });

  it('loses nothing when the host of the synchronous standby dies', async () => {
    const primary = await database.primary();
    const names = await database.sql(
      primary,
      `select application_name from pg_stat_replication where sync_state = 'sync'`,
    );
    const standby = lab.hosts.find(({ name }) => name === names[0])!;
    const others = lab.hosts.filter((host) => host !== standby);
    await failDuring('the host of the synchronous standby dies', others, () => standby.die());
  });
});
