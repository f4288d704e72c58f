/** Three agents as processes that are killed, stopped and replaced. What a host serves is in files that outlive its agent. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { leaseFileOf } from '../../src/hosts/part.ts';
import { createPublishers } from '../../src/hosts/publisher.ts';
import { claimPublishing, listHosts } from '../../src/hosts/store.ts';
import { connect } from '../../src/platform/db.ts';
import { createKeyring } from '../../src/platform/encryption.ts';
import { createListener } from '../../src/platform/listener.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { cloneDatabase } from '../harness.ts';
import { pinnedNode, preloadsOf } from '../server-program.ts';

const leaseSeconds = 3;
const program = join(import.meta.dirname, 'agent-process.ts');
const eventually = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: 40_000, interval: 20 });

async function openRegion() {
  const { connection, drop } = await cloneDatabase(inject('postgres'));
  const db = connect({ ...connection, poolSize: 4, log: silentLogger });
  const key = randomBytes(32);
  const keyring = createKeyring([{ id: 'test', key }]);
  const listener = createListener({ db, log: silentLogger });
  const publishers = createPublishers({
    ...{ db, keyring, listener, log: silentLogger, regionId: 1 },
    epoch: await claimPublishing(db, 1),
    onSuperseded: () => {},
  });
  const publisher = publishers.of<number>('load_balancer');
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-agents-'));
  const processes: ChildProcess[] = [];
  onTestFinished(async () => {
    for (const each of processes) each.kill('SIGKILL');
    await publishers.stop();
    await db.$client.end();
    await drop();
    rmSync(folder, { recursive: true });
  });
  const hosts = () => listHosts(db, [1], null);
  const serving = async () =>
    (await hosts()).filter(({ leaseValid, converged }) => leaseValid && converged).map(({ name }) => name);
  const start = (name: string, dataDir = join(folder, name)) => {
    const args = [JSON.stringify(connection), key.toString('base64'), dataDir, name, String(leaseSeconds)];
    const child = spawn(pinnedNode, [...preloadsOf(program), program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    processes.push(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const kill = async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await ended;
    };
    return { child, ended, kill, output: () => output };
  };
  const world = (name: string) => {
    const dir = join(folder, name, 'world');
    return Object.fromEntries(readdirSync(dir).map((id) => [id, JSON.parse(readFileSync(join(dir, id), 'utf8'))]));
  };
  return {
    ...{ db, hosts, serving, start, world },
    publish: (id: string, state: number | null) => publisher.publish(id, state, AbortSignal.timeout(50_000)),
    published: async () => Object.fromEntries(await publisher.states()),
    leaseFile: (name: string) => leaseFileOf(join(folder, name)),
    until: (...names: string[]) => eventually(async () => expect(await serving()).toEqual(names)),
  };
}

it('hosts that are killed, stopped or replaced serve what is published, and block no change', async () => {
  const region = await openRegion();
  const { start, publish, until, world } = region;
  let [h1, h2, h3] = ['h1', 'h2', 'h3'].map((name) => start(name)) as [Agent, Agent, Agent];
  await until('h1', 'h2', 'h3');
  await Promise.all(Array.from({ length: 20 }, (_, i) => publish(`b${i}`, i)));
  for (const name of ['h1', 'h2', 'h3']) expect(world(name)).toEqual(await region.published());

  // Killed in the middle of changes, which end without it.
  const changes = Array.from({ length: 20 }, (_, i) => publish(`b${i}`, i < 10 ? i + 100 : null));
  await h3.kill('SIGKILL');
  await Promise.all(changes);
  expect(await region.serving()).toEqual(['h1', 'h2']);
  expect(world('h1')).toEqual(await region.published());
  // What it may still hold ended with its lease, which others on its host compare with /proc/uptime.
  expect(Number(readFileSync(region.leaseFile('h3'), 'utf8'))).toBeLessThan(uptime());

  // It returns with an old configuration, and converges before it serves.
  await publish('revoked', 1);
  await publish('revoked', null);
  h3 = start('h3');
  await until('h1', 'h2', 'h3');
  expect(world('h3')).toEqual(await region.published());
  expect(Object.values(world('h3')).every((value) => Number(value) >= 100)).toBe(true);

  // Stopped (SIGSTOP): it cannot notice that its lease ends. It stops serving when it continues.
  h2.child.kill('SIGSTOP');
  await publish('while-stopped', 1);
  expect(Number(readFileSync(region.leaseFile('h2'), 'utf8'))).toBeLessThan(uptime());
  expect(world('h2')).not.toHaveProperty('while-stopped');
  h2.child.kill('SIGCONT');
  await until('h1', 'h2', 'h3');
  expect(h2.output()).toContain('the lease of this host is lost');
  expect(world('h2')).toEqual(await region.published());

  // Another machine with the same name is refused; the first one is not disturbed.
  const double = start('h1', join(tmpdir(), `cloudyard-double-${process.pid}`));
  onTestFinished(() => rmSync(join(tmpdir(), `cloudyard-double-${process.pid}`), { recursive: true, force: true }));
  expect(await double.ended).toBe(1);
  expect(double.output()).toContain('another agent is the host h1 of region 1');
  expect(await region.serving()).toEqual(['h1', 'h2', 'h3']);

  // Replaced in order: a change waits for its successor, and nothing is removed meanwhile.
  const before = world('h1');
  await h1.kill('SIGTERM');
  expect(world('h1')).toEqual(before);
  expect(existsSync(region.leaseFile('h1'))).toBe(true);
  h1 = start('h1');
  await publish('after-replacement', 1);
  await until('h1', 'h2', 'h3');
  for (const name of ['h1', 'h2', 'h3']) expect(world(name)).toEqual(await region.published());

  // All die and return: nothing that was acknowledged is lost.
  await Promise.all([h1, h2, h3].map((host) => host.kill('SIGKILL')));
  await expect(region.hosts()).resolves.toHaveLength(3);
  for (const name of ['h1', 'h2', 'h3']) start(name);
  await until('h1', 'h2', 'h3');
  for (const name of ['h1', 'h2', 'h3']) expect(world(name)).toEqual(await region.published());
  await eventually(async () =>
    expect((await region.hosts()).map(({ pendingChanges }) => pendingChanges)).toEqual([0, 0, 0]),
  );
});

type Agent = ReturnType<Awaited<ReturnType<typeof openRegion>>['start']>;
