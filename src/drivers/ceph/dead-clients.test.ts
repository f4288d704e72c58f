/**
 * If the connection of a client ends while an OSD records its watch, Ceph 16.2 keeps the watch without a time limit, and an image
 * with a watch cannot be deleted.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import type { CephCluster } from '../../../test/several-hosts/ceph-cluster.ts';
import { volume } from '../test-desired.ts';
import { PYTHON } from './bridge.ts';
import { imagesOf } from './images.ts';
import { cephTestHost, needed } from './test-host.ts';

const signal = new AbortController().signal;
const watchSeconds = 3;

/** Watches an object when it receives a line. */
const watcher = `import rados, sys
cluster = rados.Rados(conffile=sys.argv[1], name="client.admin")
cluster.connect()
context = cluster.open_ioctx(sys.argv[2])
context.stat(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
context.watch(sys.argv[3], lambda *_: None)`;

/** The replica does not respond while the client dies, so the record is not complete. */
async function leaveWatch({ command, conf, pool, signal: send }: CephCluster, object: string): Promise<void> {
  const place = (await command({ prefix: 'osd map', pool, object })) as { acting: number[]; acting_primary: number };
  const replica = `osd.${place.acting.find((each) => each !== place.acting_primary)!}` as const;
  const client = spawn(PYTHON, ['-I', '-c', watcher, conf, pool, object], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(client.stdout, 'data');
  send(replica, 'SIGSTOP');
  client.stdin.write('\n');
  await sleep(1000);
  client.kill('SIGKILL');
  await once(client, 'exit');
  await sleep(500);
  send(replica, 'SIGCONT');
}

it.skipIf(!requires(...needed))(
  skipReason(...needed) ??
    'the data of a removed volume is deleted although Ceph does not notice that a client of it died',
  { timeout: 120_000 },
  async () => {
    const host = await cephTestHost();
    onTestFinished(host.cleanUp);
    const { cluster } = host;
    const watchTimeout = { name: 'osd_client_watch_timeout', value: String(watchSeconds) };
    await cluster.command({ prefix: 'config set', who: 'osd', ...watchTimeout });
    const images = imagesOf(cluster.admin, cluster.pool);
    const driver = host.driver({ checkSeconds: 0.5, busySeconds: 3 * watchSeconds });
    await driver.start();
    onTestFinished(() => driver.stop());
    const desired = volume();
    await driver.apply(desired, signal);
    const { id } = (await images.find({ name: desired.id }))!;
    await leaveWatch(cluster, `rbd_header.${id}`);
    await driver.remove(desired.id, signal);
    // Other watches end by themselves.
    await sleep(2 * watchSeconds * 1000);
    expect(await images.trash()).toEqual([{ id, name: desired.id }]);
    await expect.poll(() => images.trash(), { timeout: 60_000 }).toEqual([]);
    // Nothing else is left.
    const objects = (await cluster.admin.call<string[]>('object.list', { pool: cluster.pool })).sort();
    expect(objects.filter((name) => name.includes(id) || name.includes('reload'))).toEqual([]);
  },
);
