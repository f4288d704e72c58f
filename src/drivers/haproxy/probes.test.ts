/** Probes with a `ping` that hangs or is killed for some addresses. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { until } from '../../../test/until.ts';
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

it('a ping that was killed says nothing about its member', async () => {
  const ping = join(folder, 'killed-ping');
  const ended = join(folder, 'ended');
  writeFileSync(ended, '');
  chmodSync(ended, 0o666);
  writeFileSync(
    ping,
    `#!/bin/sh\nfor address; do :; done\necho $address >>${ended}\ncase $address in 192.0.2.1) kill -9 $$;; *) exit 1;; esac\n`,
  );
  chmodSync(ping, 0o755);
  const addresses = ['192.0.2.1', '192.0.2.2'];
  const pinged = pool({
    members: addresses.map((address) => member(80, { address })),
    monitor: monitor({ type: 'PING', delay: 50, timeout: 1000 }),
  });
  const probes = createProbes({
    specs: () => [{ tenant: '1', enabled: true, pools: [pinged] }],
    ping,
    onChange: () => undefined,
    log: silentLogger,
  });
  probes.update();
  const [killed, refused] = pinged.members.map(({ id }) => id);
  try {
    await until(() => probes.verdict(refused!) === false, 15, 'the member that does not answer is down');
    const pings = () =>
      readFileSync(ended, 'utf8')
        .split('\n')
        .filter((each) => each === addresses[0]).length;
    await until(() => pings() > 2, 15, 'the killed ping ran several times');
    expect(probes.verdict(killed!)).toBeUndefined();
  } finally {
    probes.stop();
  }
});
