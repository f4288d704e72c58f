/** Probes with a `ping` that hangs for some addresses. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { until } from '../../../test/until.ts';
import type { DesiredPool } from '../load-balancer.ts';
import { createProbes } from './probes.ts';
import { member, monitor, pool } from './test-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-probes-'));
const hanging = join(folder, 'hanging');
// As root, ping runs under a separate account.
chmodSync(folder, 0o711);
writeFileSync(hanging, '');
chmodSync(hanging, 0o666);
afterAll(() => {
  for (const pid of readFileSync(hanging, 'utf8').split('\n').filter(Boolean)) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
  rmSync(folder, { recursive: true, force: true });
});

it('members of one tenant that do not respond to pings do not delay those of another', async () => {
  const ping = join(folder, 'ping');
  const script = `#!/bin/sh\nfor address; do :; done\ncase $address in 192.0.2.*) echo $$ >>${hanging}; exec sleep 60;; esac\n`;
  writeFileSync(ping, script);
  chmodSync(ping, 0o755);
  const pinged = (addresses: string[]) =>
    pool({
      members: addresses.map((address) => member(80, { address })),
      monitor: monitor({ type: 'PING', delay: 100, timeout: 50_000 }),
    });
  const deaf = pinged(Array.from({ length: 20 }, (_, at) => `192.0.2.${at + 1}`));
  const alive = pinged(['127.0.0.1']);
  const probes = createProbes({
    specs: () => [
      { tenant: '666', enabled: true, pools: [deaf] },
      { tenant: '1', enabled: true, pools: [alive] },
    ],
    ping,
    onChange: () => undefined,
    log: silentLogger,
  });
  probes.update();
  try {
    await until(() => probes.verdict(alive.members[0]!.id), 15, 'the member that answers is up');
  } finally {
    probes.stop();
  }
});

it('a ping that says nothing about a member leaves its result unchanged', async () => {
  const ping = join(folder, 'unreliable');
  const calls = join(folder, 'calls');
  writeFileSync(calls, '');
  chmodSync(calls, 0o666);
  // Renamed, because a script that is about to run cannot be written (ETXTBSY).
  const write = (script: string) => {
    const next = `${ping}.new`;
    writeFileSync(next, `#!/bin/sh\necho >>${calls}\n${script}\n`);
    chmodSync(next, 0o755);
    renameSync(next, ping);
  };
  write('exit 0');
  const probed = pool({
    members: [member(80)],
    monitor: monitor({ type: 'PING', delay: 1, timeout: 100, maxRetriesDown: 1 }),
  });
  const probes = probesOf(probed, ping);
  const verdict = () => probes.verdict(probed.members[0]!.id);
  const pings = () => readFileSync(calls, 'utf8').length;
  probes.update();
  try {
    await until(() => verdict() !== undefined, 15, 'the first result');
    const shortage = 'echo "ping: socket: Too many open files" >&2; exit 2';
    for (const script of ['kill -9 $$', 'exit 127', shortage]) {
      write(script);
      const before = pings();
      await until(() => pings() > before + 2, 15, 'pings');
      expect([script, verdict()]).toEqual([script, true]);
    }
    write('exit 1');
    await until(() => verdict() === false, 15, 'the member that does not answer is down');
  } finally {
    probes.stop();
  }
});

it('a socket that this host cannot open says nothing about a member', () => {
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url));
  const script = `
    import { openSync, closeSync } from 'node:fs';
    import { createProbes } from ${module('probes.ts')};
    const monitor = { type: 'UDP-CONNECT', enabled: true, delay: 1, timeout: 50, maxRetries: 1, maxRetriesDown: 1 };
    const member = { id: 'one', enabled: true, address: '127.0.0.1', port: 9, monitorAddress: null, monitorPort: null };
    const pools = [{ id: 'pool', protocol: 'UDP', enabled: true, monitor, members: [member] }];
    const log = { info() {} };
    const probes = createProbes({ specs: () => [{ tenant: '1', enabled: true, pools }], onChange() {}, log });
    const descriptors = [];
    try { for (;;) descriptors.push(openSync('/dev/null')); } catch {}
    probes.update();
    setTimeout(() => {
      console.log(probes.verdict('one'));
      for (const each of descriptors) closeSync(each);
      const timer = setInterval(() => {
        if (probes.verdict('one') === undefined) return;
        console.log(probes.verdict('one'));
        clearInterval(timer);
        probes.stop();
      }, 5);
    }, 200);`;
  const node = [process.execPath, '--input-type=module', '--eval', script];
  expect(execFileSync('prlimit', ['--nofile=64:64', ...node], { encoding: 'utf8' })).toBe('undefined\nfalse\n');
});

it('an address that this host cannot send to is down', async () => {
  const probed = pool({
    protocol: 'UDP',
    // The kernel refuses broadcasts, as it refuses an address without a route.
    members: [member(53, { address: '255.255.255.255' })],
    monitor: monitor({ type: 'UDP-CONNECT' }),
  });
  const probes = probesOf(probed);
  probes.update();
  try {
    await until(() => probes.verdict(probed.members[0]!.id) === false, 15, 'the member is down');
  } finally {
    probes.stop();
  }
});

it('the longest times of the API are not taken for the shortest', async () => {
  const ping = join(folder, 'counted');
  const calls = join(folder, 'counted-calls');
  writeFileSync(calls, '');
  chmodSync(calls, 0o666);
  writeFileSync(ping, `#!/bin/sh\necho >>${calls}\nsleep 0.1\n`);
  chmodSync(ping, 0o755);
  const longest = { delay: 2_147_483_647_000, timeout: 2_147_483_000 };
  const probed = pool({ members: [member(80)], monitor: monitor({ type: 'PING', ...longest }) });
  const probes = probesOf(probed, ping);
  probes.update();
  try {
    await until(() => probes.verdict(probed.members[0]!.id) === true, 15, 'the first result');
    await sleep(1_000);
    expect(readFileSync(calls, 'utf8')).toBe('\n');
  } finally {
    probes.stop();
  }
});

function probesOf(probed: DesiredPool, ping: string | null = null) {
  return createProbes({
    specs: () => [{ tenant: '1', enabled: true, pools: [probed] }],
    ping,
    onChange: () => undefined,
    log: silentLogger,
  });
}
