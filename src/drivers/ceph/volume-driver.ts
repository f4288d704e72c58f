/** The volume driver of a region whose storage is a Ceph pool. volumes.ts does the work; this file starts, watches and stops. */
import { hasReserve, inGib } from '../../platform/disk-space.ts';
import type { DiskSpace, DriverStatus } from '../../platform/driver-status.ts';
import type { Logger } from '../../platform/log.ts';
import { poll } from '../../platform/poll.ts';
import { refuseAborted } from '../command.ts';
import { isId } from '../id-files.ts';
import { oneAtATime } from '../../platform/turns.ts';
import type { VolumeDriver } from '../volume.ts';
import type { CephBridge } from './bridge.ts';
import { clusterHealth, poolSpace } from './commands.ts';
import { imagesOf } from './images.ts';
import { createLongCalls } from '../long-calls.ts';
import { createTrash } from './trash.ts';
import * as volumes from './volumes.ts';

export interface CephVolumeOptions {
  /** The driver starts and stops it. */
  bridge: CephBridge;
  pool: string;
  /** Percent of the pool that stays free. */
  diskReserve: number;
  log: Logger;
  /** How long a call waits for a copy, in milliseconds. */
  copyWaitMs?: number;
  maxAncestors?: number;
  /** Between two checks of the cluster. */
  checkSeconds?: number;
  /** How long clients may use a removed volume before their watches are read again (trash.ts). */
  busySeconds?: number;
}

const MAX_ANCESTORS = 8;
const CHECK_SECONDS = 10;

interface Checked {
  space: DiskSpace;
  /** `HEALTH_OK`, or the problems that the cluster reports. */
  health: string;
}

/** `start` rejects if the cluster does not respond; then the caller stops the driver. */
export function createCephVolumeDriver(options: CephVolumeOptions): VolumeDriver {
  const { bridge, pool, log, diskReserve } = options;
  const images = imagesOf(bridge, pool);
  const store: volumes.VolumeStore = {
    images,
    longCalls: createLongCalls(options.copyWaitMs),
    maxAncestors: options.maxAncestors ?? MAX_ANCESTORS,
  };
  const inTurn = oneAtATime();
  let isStopped = false;
  let stopChecks = () => {};
  let checked: Checked | null = null;

  const check = async () => {
    const [space, health] = await Promise.all([poolSpace(bridge, pool, diskReserve), clusterHealth(bridge)]);
    checked = { space, health };
  };
  const trash = createTrash(images, log, options.busySeconds);
  /** In the background. */
  const emptyTrash = (emptying: Promise<void>) =>
    void emptying.catch((error: unknown) => isStopped || log.warn({ err: error }, 'the trash cannot be emptied'));
  const checkAgain = async () => {
    await check().catch((error: unknown) => log.warn({ err: error }, 'the storage cluster cannot be checked'));
    emptyTrash(trash.emptyWhenDue());
  };

  return {
    name: 'ceph',
    real: true,
    status: () => statusOf(options, checked),
    async start() {
      await bridge.start();
      await check();
      emptyTrash(trash.emptyWhenDue());
      stopChecks = poll(checkAgain, (options.checkSeconds ?? CHECK_SECONDS) * 1000);
    },
    async stop() {
      isStopped = true;
      stopChecks();
      await bridge.stop();
    },
    list: async () => (await images.list()).filter(isId).sort(),
    apply: (desired, signal) => inTurn(desired.id, () => volumes.applyVolume(store, desired, signal)),
    async remove(id, signal) {
      refuseAborted(signal);
      await inTurn(id, () => volumes.removeVolume(store, id));
      emptyTrash(trash.empty());
    },
    quarantine: (id) => inTurn(id, () => volumes.quarantineVolume(store, id)),
    snapshots: {
      real: true,
      list: async () => [...(await images.index.get()).keys()].sort(),
      apply: (desired, signal) => inTurn(desired.id, () => volumes.applySnapshot(store, desired, signal)),
      async remove(id, signal) {
        refuseAborted(signal);
        await inTurn(id, () => volumes.removeSnapshot(store, id));
      },
      quarantine: (id) => inTurn(id, () => volumes.quarantineSnapshot(store, id)),
    },
  };
}

/** `checked`: null before the first check. */
function statusOf({ bridge, pool }: CephVolumeOptions, checked: Checked | null): DriverStatus {
  const disconnected = bridge.problem();
  const free = checked && `${inGib(checked.space.freeBytes)} of ${inGib(checked.space.totalBytes)} free`;
  const full = checked !== null && !hasReserve(checked.space);
  const refusal = full && 'less than the reserve, so creates are refused';
  const problem = disconnected ?? (checked && checked.health !== 'HEALTH_OK' ? checked.health : null);
  return {
    ...{ driver: 'ceph', real: true, healthy: disconnected === null && !full },
    detail: [`Ceph pool ${pool}`, free, refusal, problem].filter(Boolean).join('; '),
    space: checked?.space,
  };
}
