/** A Ceph cluster with a pool for volumes, and the user that docs/guides/ceph.md prepares. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import {
  type CephCluster,
  type CephClusterOptions,
  startCephCluster,
} from '../../../test/several-hosts/ceph-cluster.ts';
import { silentLogger } from '../../platform/log.ts';
import type { VolumeDriver } from '../volume.ts';
import { type BridgeOptions, type CephBridge, createCephBridge } from './bridge.ts';
import { type CephVolumeOptions, createCephVolumeDriver } from './volume-driver.ts';

export interface CephTestHost {
  cluster: CephCluster;
  /** Connected as the user of the guide; not started. */
  bridge(options?: Partial<BridgeOptions>): CephBridge;
  driver(options?: Partial<CephVolumeOptions>): VolumeDriver;
  /** Commands of qemu-io, which open an image (`<image>` or `<image>@<snapshot>`) as a virtual machine does. */
  qemu(image: string, command: string): Promise<string>;
  cleanUp(): Promise<void>;
}

const cephUser = 'cloudyard';
export const needed = ['ceph', 'qemu-utils', 'root'] as const;

export async function cephTestHost(options: CephClusterOptions = { filesystem: false }): Promise<CephTestHost> {
  const cluster = await startCephCluster(options);
  const { conf, pool } = cluster;
  await cluster.addUser(cephUser, {
    mon: 'profile rbd',
    mgr: `profile rbd pool=${pool}`,
    osd: `profile rbd pool=${pool}`,
  });
  const bridge: CephTestHost['bridge'] = (changes) =>
    createCephBridge({ conf, user: cephUser, log: silentLogger, ...changes });
  return {
    cluster,
    bridge,
    driver: (changes) =>
      createCephVolumeDriver({ bridge: bridge(), pool, diskReserve: 5, log: silentLogger, ...changes }),
    async qemu(image, command) {
      const file = `rbd:${pool}/${image}:id=admin:conf=${conf}`;
      const access = command.startsWith('read') ? ['-r'] : [];
      return (await promisify(execFile)('qemu-io', [...access, '-f', 'raw', '-c', command, file])).stdout;
    },
    cleanUp: cluster.stop,
  };
}
