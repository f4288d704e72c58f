/** A Ceph cluster with a pool for volumes, and the user that docs/guides/ceph.md prepares. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type CephClusterOptions, startCephCluster } from '../../../test/several-hosts/ceph-cluster.ts';
import { silentLogger } from '../../platform/log.ts';
import { type BridgeOptions, createCephBridge } from './bridge.ts';
import { type CephVolumeOptions, createCephVolumeDriver } from './volume-driver.ts';

const cephUser = 'cloudyard';
export const needed = ['ceph', 'qemu-utils', 'root'] as const;

export async function cephTestHost(options: CephClusterOptions = { filesystem: false }) {
  const cluster = await startCephCluster(options);
  const { conf, pool } = cluster;
  await cluster.addUser(cephUser, {
    mon: 'profile rbd',
    mgr: `profile rbd pool=${pool}`,
    osd: `profile rbd pool=${pool}`,
  });
  /** Connected as the user of the guide; not started. */
  const bridge = (changes?: Partial<BridgeOptions>) =>
    createCephBridge({ conf, user: cephUser, log: silentLogger, ...changes });
  return {
    cluster,
    bridge,
    driver: (changes?: Partial<CephVolumeOptions>) =>
      createCephVolumeDriver({ bridge: bridge(), pool, diskReserve: 5, log: silentLogger, ...changes }),
    /** Commands of qemu-io, which open an image (`<image>` or `<image>@<snapshot>`) as a virtual machine does. */
    async qemu(image: string, command: string): Promise<string> {
      const file = `rbd:${pool}/${image}:id=admin:conf=${conf}`;
      const access = command.startsWith('read') ? ['-r'] : [];
      return (await promisify(execFile)('qemu-io', [...access, '-f', 'raw', '-c', command, file])).stdout;
    },
    cleanUp: cluster.stop,
  };
}

export type CephTestHost = Awaited<ReturnType<typeof cephTestHost>>;
