/**
 * File shares of three hosts, and clients with open files and locks while hosts fail. Prints the longest gaps between two writes;
 * `TEST_GAPS=1` checks them.
 * The cases run in order: each one begins with the hosts that the one before has left.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { DesiredFileShare } from '../../src/drivers/file-share.ts';
import { liveProcess } from '../../src/platform/running-processes.ts';
import { requires, skipReason } from '../requires.ts';
import { expectGap } from './gaps.ts';
import { labWorks, type LabNode } from './lab.ts';
import { createNfsRegion, GROUP, GROUP6, type NfsHost, type NfsRegion, type Writer } from './nfs-hosts.ts';

const parts = ['ceph', 'ceph-mds', 'nfs-ganesha', 'nfs-ganesha-ceph', 'iputils-arping', 'root'] as const;
const runs = requires(...parts) && labWorks();
const EXPORTS = 30;
const GIB = 1024 ** 3;

describe.skipIf(!runs)(skipReason(...parts) ?? 'NFS groups of three hosts', { timeout: 120_000 }, () => {
  const signal = new AbortController().signal;
  const gaps: Record<string, string> = {};
  const everyone = ['10.77.0.0/16', 'fd00:77::/48'].map((network) => ({ network, mode: 'rw' as const }));
  const share = (exportId: number, group = GROUP): DesiredFileShare => ({
    ...{ id: randomUUID(), sizeGib: 1, settledGib: null, rootSquash: false, access: everyone },
    export: { group, exportId },
  });
  const shares = Array.from({ length: EXPORTS }, (_, at) => share(at + 1));
  const share6 = share(1, GROUP6);
  const [written, revoked, filled, removed] = shares as [
    DesiredFileShare,
    DesiredFileShare,
    DesiredFileShare,
    DesiredFileShare,
  ];
  let region: NfsRegion;
  let writer: Writer;
  let client: LabNode;
  /** Next to the host that it uses although another one took over: its neighbour table does not change. */
  let misled: LabNode;

  beforeAll(async () => {
    region = await createNfsRegion();
    [client, misled] = region.lab.clients as [LabNode, LabNode];
    await region.driver.start();
    for (const host of region.hosts) await host.start();
    await Promise.all([...shares, share6].map((each) => region.driver.apply(each, signal)));
    writer = region.writer(client);
    await writer.open(written.id, { name: 'written' });
    await writer.write();
    await writer.untilWritten(20);
  }, 180_000);
  afterAll(async () => {
    console.table(gaps);
    await region?.remove();
  }, 60_000);

  /**
   * After an event: the writer writes again, with the state that it had. `refused`: by a server that was fenced. `barMs`: of
   * docs/several-hosts.md.
   */
  const survived = async (event: string, { refused = false, barMs = Infinity } = {}): Promise<void> => {
    await writer.untilWritten(20);
    const report = await writer.report();
    expect(report.failure).toBeNull();
    expect(report.reclaims).toBeGreaterThan(0);
    if (!refused) expect(report.refusals).toBe(0);
    expectGap(report, barMs);
    gaps[event] = `${(report.longestGapMs / 1000).toFixed(1)} s`;
  };
  const macOf = async ({ node }: NfsHost) =>
    (await node.run('cat', [`/sys/class/net/${node.interface}/address`])).stdout.trim();
  /** `stale`: an announcement of another host replaces the entry. */
  const misleadTo = async (host: NfsHost, group = GROUP, state: 'permanent' | 'stale' = 'permanent'): Promise<void> => {
    const entry = [group, 'lladdr', await macOf(host), 'nud', state, 'dev', misled.interface];
    await misled.run('ip', ['neigh', 'replace', ...entry]);
  };
  const leadBack = () => misled.run('ip', ['neigh', 'del', GROUP, 'dev', misled.interface]);
  const hasAddress = async ({ node }: NfsHost, group = GROUP) => (await node.addresses()).includes(group);

  it('writes without a gap while nothing happens', async () => {
    expect(await writer.report()).toMatchObject({ failure: null, reclaims: 0 });
    const usage = await region.driver.usage();
    expect(usage.get(written.id)!.totalBytes).toBe(1024 ** 3);
  });

  it('serves on when its host converges again, with what was published meanwhile', async () => {
    const host = await region.server(GROUP);
    const server = host.ganesha(GROUP);
    await region.setDead(host);
    const changes = [region.driver.apply({ ...revoked, access: [] }, signal), region.driver.remove(removed.id, signal)];
    await expect.poll(() => region.published(revoked.id)?.access).toEqual([]);
    await expect.poll(() => region.published(removed.id)).toBe(undefined);
    await host.join();
    await Promise.all(changes);
    for (const { id } of [revoked, removed]) expect(await writer.lookUp(id)).not.toBeNull();
    // Longer than a lock lasts.
    await writer.untilWritten(200);
    expect(await writer.report()).toMatchObject({ failure: null, reclaims: 0 });
    expect(host.ganesha(GROUP)).toBe(server);
    await Promise.all([revoked, removed].map((each) => region.driver.apply(each, signal)));
    expect(await writer.lookUp(revoked.id)).toBeNull();
  });

  it('fails writes beyond the size of a share, until it is extended', async () => {
    const filler = region.writer(client);
    await filler.open(filled.id, { name: 'filler', lock: false });
    expect(await filler.writeAt(0.5 * GIB)).toBeNull();
    expect(await filler.writeAt(1.5 * GIB)).toBe('DQUOT');
    await region.driver.apply({ ...filled, sizeGib: 2, settledGib: 1 }, signal);
    expect(await filler.writeAt(1.5 * GIB)).toBeNull();
    await filler.close();
  });

  it('serves on when the capabilities of the user of a share are written in another way', async () => {
    const entity = `client.cloudyard.1.${filled.id}`;
    const userOf = async () => (await region.cluster.command({ prefix: 'auth get', entity })) as [{ caps: object }];
    const before = await userOf();
    const caps = Object.entries(before[0].caps).flatMap(([kind, text]) => [kind, `${text}, ${text}`]);
    await region.cluster.command({ prefix: 'auth caps', entity, caps });
    await region.driver.apply({ ...filled, sizeGib: 2, settledGib: 2 }, signal);
    expect(await userOf()).toEqual(before);
  });

  it('restarts a Ganesha that dies alone', async () => {
    const host = await region.server(GROUP);
    process.kill(host.ganesha(GROUP), 'SIGKILL');
    await survived('Ganesha alone dies');
  });

  it('moves the group when its host dies', async () => {
    const first = await region.server(GROUP);
    await first.node.die();
    await region.setDead(first);
    await survived('host dies', { barMs: 8000 });
    expect(await hasAddress(await region.server(GROUP, first))).toBe(true);
    await first.node.boot();
    await first.start();
  });

  it('moves a group with an IPv6 address, and notifies the neighbours', async () => {
    const other = region.writer(client);
    await other.open(share6.id, { name: 'other', group: GROUP6 });
    await other.write();
    await other.untilWritten(10);
    const first = await region.server(GROUP6);
    await misleadTo(first, GROUP6, 'stale');
    await first.node.die();
    await region.setDead(first);
    await other.untilWritten(10);
    expect(await other.report()).toMatchObject({ failure: null, reclaims: 1, refusals: 0 });
    const next = await region.server(GROUP6, first);
    expect(await hasAddress(next, GROUP6)).toBe(true);
    const mac = await macOf(next);
    await until(async () => (await misled.run('ip', ['neigh', 'show', GROUP6])).stdout.includes(mac));
    await other.stop();
    expect(await other.verify()).toBe(true);
    await first.node.boot();
    await first.start();
  });

  it('fences a host that believes to hold the group, and notices when it was fenced itself', async () => {
    const old = await region.server(GROUP);
    await misleadTo(old);
    const other = region.writer(misled);
    await other.open(shares[3]!.id, { name: 'other', lock: false });
    // A busy server may respond after the time limit of a call.
    await expect.poll(() => other.writeOnce('before')).toBeNull();
    const ganesha = old.ganesha(GROUP);
    // Its watcher would end it.
    const watcher = Number(readFileSync(`/proc/${ganesha}/task/${ganesha}/children`, 'utf8').trim());
    old.freeze();
    process.kill(watcher, 'SIGSTOP');
    await region.setDead(old);
    const next = await region.server(GROUP, old);
    expect(liveProcess(ganesha)).not.toBeNull();
    expect(await other.writeOnce('after')).not.toBeNull();
    await survived('agent and watcher frozen, Ganesha alive and fenced', { refused: true });
    old.thaw();
    await until(() => liveProcess(ganesha) === null);
    process.kill(watcher, 'SIGKILL');
    await until(async () => !(await hasAddress(old)));
    expect(await hasAddress(next)).toBe(true);
    await leadBack();
    await other.close();
    await old.join();
  });

  it('restarts a Ganesha whose clients of Ceph were evicted', async () => {
    const host = await region.server(GROUP);
    const before = host.ganesha(GROUP);
    await region.records.fence(GROUP);
    await survived('Ganesha fenced in error', { refused: true });
    expect(host.ganesha(GROUP)).not.toBe(before);
  });

  it('reports a revoked rule as done when the host that is isolated cannot serve it any more', async () => {
    const old = await region.server(GROUP);
    await misleadTo(old);
    const other = region.writer(misled);
    await expect.poll(() => other.lookUp(revoked.id)).toBeNull();
    old.freeze();
    await region.lab.partition(
      [old.node, misled],
      [region.lab.services, client, ...region.hosts.filter((host) => host !== old).map(({ node }) => node)],
    );
    await region.setDead(old);
    const ganesha = old.ganesha(GROUP);
    await region.driver.apply({ ...revoked, access: [] }, signal);
    // Ended by its watcher.
    expect(liveProcess(ganesha)).toBeNull();
    await until(async () => !(await hasAddress(old)));
    const servers = [...(await region.records.servers(GROUP)).values()];
    expect(servers.map(({ host }) => host)).not.toContain(old.node.name);
    await survived('host isolated, agent frozen');
    await region.lab.heal();
    expect(await other.lookUp(revoked.id)).not.toBeNull();
    old.thaw();
    await leadBack();
    expect(await other.lookUp(revoked.id)).not.toBeNull();
    await expect.poll(() => other.lookUp(written.id)).toBeNull();
    await old.join();
  });

  it('survives the death of the host that takes over, in the middle of it', async () => {
    const first = await region.server(GROUP);
    await first.kill();
    await region.setDead(first);
    const starting = async () =>
      [...(await region.records.servers(GROUP)).values()].find(
        ({ host, serving }) => !serving && host !== first.node.name,
      );
    let name: string | undefined;
    await until(async () => (name = (await starting())?.host) !== undefined);
    const taking = region.hosts.find(({ node }) => node.name === name)!;
    await taking.kill();
    await region.setDead(taking);
    await survived('two hosts die, one of them while it takes over');
    for (const host of [first, taking]) {
      await until(async () => !(await hasAddress(host)));
      await host.start();
    }
  });

  it('moves the group when its host dies and an OSD is away', async () => {
    const first = await region.server(GROUP);
    await region.cluster.kill('osd.0');
    await first.kill();
    await region.setDead(first);
    await survived('host and OSD die');
    expect(await hasAddress(await region.server(GROUP, first))).toBe(true);
    region.cluster.start('osd.0');
    await first.start();
  });

  it('drains a host', async () => {
    const host = await region.server(GROUP);
    await host.call('drain');
    expect(await hasAddress(host)).toBe(false);
    await survived('drain', { barMs: 6000 });
    await host.call('serve');
  });

  it('has extended a share when its server accepts more, although CephFS notifies it late', async () => {
    const delay = { ms_inject_delay_type: 'mds', ms_inject_delay_probability: '1', ms_inject_delay_max: '0.4' };
    const configure = (prefix: string, name: string, value?: string) =>
      region.cluster.command({ prefix, who: `client.cloudyard.1.${filled.id}`, name, value });
    onTestFinished(async () => {
      for (const name of Object.keys(delay)) await configure('config rm', name);
    });
    for (const [name, value] of Object.entries(delay)) await configure('config set', name, value);
    // Clients of Ceph read their configuration when they start.
    process.kill((await region.server(GROUP)).ganesha(GROUP), 'SIGKILL');
    await survived('Ganesha dies again');
    const filler = region.writer(client);
    await filler.open(filled.id, { name: 'filler', lock: false });
    for (const sizeGib of [3, 4, 5]) {
      expect(await filler.writeAt((sizeGib - 0.5) * GIB)).toBe('DQUOT');
      await region.driver.apply({ ...filled, sizeGib, settledGib: sizeGib - 1 }, signal);
      expect(await filler.writeAt((sizeGib - 0.5) * GIB)).toBeNull();
    }
    await filler.close();
  });

  it('has lost nothing that was written', async () => {
    await writer.stop();
    expect(await writer.verify()).toBe(true);
  });

  it('removes a share and its group with the last one', async () => {
    await Promise.all([...shares, share6].map(({ id }) => region.driver.remove(id, signal)));
    expect(await region.driver.list()).toEqual([]);
    for (const group of [GROUP, GROUP6]) {
      await until(async () => (await region.records.servers(group)).size === 0);
      for (const host of region.hosts) expect(await hasAddress(host, group)).toBe(false);
    }
  });
});

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}
