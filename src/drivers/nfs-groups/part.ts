/**
 * The file shares of a host: serves the NFS groups that it holds. balance.ts decides which ones it takes and hands over.
 * Groups without shares are not served.
 *
 * Invariant: after `stopServing` no Ganesha runs and this host has no address of a group, whether the cluster is reachable or
 * not.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostPart, RegionView } from '../../hosts/part.ts';
import type { DriverStatus } from '../../platform/driver-status.ts';
import type { Logger } from '../../platform/log.ts';
import type { CephBridge } from '../ceph/bridge.ts';
import { hostError, refuseAborted } from '../command.ts';
import type { DriverError } from '../driver.ts';
import type { RegionStorage } from '../kind.ts';
import { interfaceOf, selfOf } from '../own-host.ts';
import { groupAddresses, type GroupAddresses } from './addresses.ts';
import { groupBalance } from './balance.ts';
import type { GroupSettings } from './configuration.ts';
import { requireGanesha } from './detect.ts';
import { drainGroups } from './drain.ts';
import { nfsGroup, type NfsGroup } from './group.ts';
import { hostGroups } from './host-groups.ts';
import { groupRecords, type GroupRecords } from './records.ts';
import { filesIn, groupServer, killServer } from './server.ts';
import type { PublishedShare } from './share-state.ts';

interface NfsPartOptions {
  dataDir: string;
  /** Makes a connection to the cluster; the part starts and stops it. */
  connect(storage: RegionStorage): CephBridge;
  port: number;
  log: Logger;
}

/** How long `stopServing` waits for the cluster. */
const RELEASE_MS = 1000;

/** From `start` to the next one. */
interface Running {
  region: RegionView;
  storage: RegionStorage;
  bridge: CephBridge;
  /** The path of ganesha.nfsd. */
  program: string;
  records: GroupRecords;
  addresses: GroupAddresses;
}

/** `start` needs the packages of nfs-groups/detect.ts, but not the cluster: groups are taken when it responds. */
export function createNfsPart(options: NfsPartOptions): HostPart<PublishedShare> {
  const { dataDir, log } = options;
  let running: Running | null = null;
  /** Since `start`, until `stopServing`. */
  let isStarted = false;
  /** Whether servers may run. */
  let mayServe = false;

  const current = (): Running => {
    if (!running) throw new Error('the part has not started');
    return running;
  };
  const groups = hostGroups((address) => createGroup(address, { ...options, ...current(), mayServe: () => mayServe }));
  const balance = groupBalance({ groups: groups.all, current, log });
  const served = () => [...groups.all.values()].filter((group) => group.isServing());

  return {
    kind: 'file_share',
    title: 'file shares',

    async start(region) {
      if (isStarted) {
        // The agent converges again, and the end of a server would interrupt its clients.
        running = { ...current(), region };
        return;
      }
      const program = requireGanesha();
      await running?.bridge.stop();
      running = { ...connect(region, options), program };
      const { addresses } = running;
      await addresses.prepare();
      for (const address of new Set([...region.settings.nfsAddresses, ...groups.all.keys()])) {
        await killServer(filesIn(dataDir, address));
        await addresses.remove(address);
      }
      groups.clear();
      isStarted = true;
    },

    async converge(states) {
      const removed = groups.shareIds().filter((id) => !states.has(id));
      const given = [...states.keys()];
      const changes = [...removed, ...given].map((id) => [id, groups.setShare(id, states.get(id) ?? null)] as const);
      const refreshed = await Promise.allSettled(changes.map(([id, group]) => group?.refresh(id)));
      const failed = new Map<string, DriverError>();
      for (const [at, result] of refreshed.entries()) {
        if (result.status === 'fulfilled') continue;
        const [id] = changes[at]!;
        if (!states.has(id)) throw result.reason;
        // Its record says that an older state may be served (group.ts), so the worker waits.
        failed.set(id, hostError(`cannot serve the share ${id}`, result.reason));
      }
      return failed;
    },

    async apply(id, state, signal) {
      refuseAborted(signal);
      await groups.setShare(id, state)?.refresh(id);
    },

    async serve() {
      mayServe = true;
      balance.start();
    },

    async hostsChanged(region) {
      running = { ...current(), region };
    },

    async stopServing() {
      isStarted = false;
      mayServe = false;
      balance.stop();
      const ended = await Promise.all([...groups.all.values()].map((group) => group.end()));
      const bridge = running?.bridge;
      const released = Promise.allSettled(ended.map((each) => each.released)).then(() => bridge?.stop());
      // Otherwise the next host waits until the locks expire.
      await Promise.race([released, sleep(RELEASE_MS, undefined, { ref: false })]);
    },

    async drain(signal) {
      balance.refuseGroups();
      const { giveUp, isTaking } = balance;
      await drainGroups({ groups: groups.all, giveUp, isTaking, current, signal, log });
    },

    status: () => statusOf(running?.bridge.problem() ?? null, served(), groups.all.size),
    heldGroups: () => served().map(({ address }) => `nfs ${address}`),
  };
}

function connect(region: RegionView, { connect: open, log }: NfsPartOptions): Omit<Running, 'program'> {
  const { storage, regionId } = region;
  if (!storage) throw new Error('file shares of several hosts need shared storage');
  const bridge = open(storage);
  // The bridge connects until it succeeds; until then the locks cannot be taken.
  bridge.start().catch((err: unknown) => log.error({ err }, 'the storage cluster does not respond'));
  const records = groupRecords({ bridge, regionId, pool: storage.pool, filesystem: storage.filesystem });
  return { region, storage, bridge, records, addresses: groupAddresses(interfaceOf(selfOf(region)), log) };
}

function createGroup(address: string, options: NfsPartOptions & Running & { mayServe(): boolean }): NfsGroup {
  const { region, storage, program, records, addresses, dataDir, port, mayServe, log } = options;
  const { regionId, self } = region;
  const folder = filesIn(dataDir, address);
  const settings: GroupSettings = {
    ...{ regionId, group: address, port, pool: storage.pool, user: storage.user, cephConf: storage.conf },
    clientConf: join(folder, 'ceph.conf'),
  };
  return nfsGroup({
    ...{ address, host: self, mayServe, records, addresses, log },
    createServer: (beforeStart) =>
      groupServer({ settings, folder, program, removal: addresses.removal(address), beforeStart, log }),
  });
}

/** `problem`: of the connection to the cluster. */
function statusOf(problem: string | null, served: NfsGroup[], all: number): DriverStatus {
  if (problem !== null) return { driver: 'ganesha', real: true, healthy: false, detail: problem };
  const problems = served.map((group) => group.problem()).filter((each) => each !== null);
  return {
    ...{ driver: 'ganesha', real: true, healthy: problems.length === 0 },
    detail: problems.join('; ') || `serves ${served.length} of ${all} NFS groups`,
  };
}
