/**
 * The file shares of a host: serves the NFS groups that it holds. balance.ts decides which ones it takes and hands over.
 * Groups without shares are not served.
 *
 * Invariant: after `stopServing` no Ganesha runs and this host has no address of a group, whether the cluster is reachable or
 * not.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { HostPart, RegionView } from '../../hosts/part.ts';
import type { CephBridge } from '../ceph/bridge.ts';
import { refuseAborted } from '../command.ts';
import type { DriverError } from '../driver.ts';
import type { RegionStorage } from '../kind.ts';
import { interfaceOf, selfOf } from '../own-host.ts';
import { groupAddresses } from './addresses.ts';
import type { GroupAddresses } from './addresses.ts';
import { groupBalance, POLL_MS } from './balance.ts';
import { requireGanesha } from './detect.ts';
import { nfsGroup } from './group.ts';
import type { NfsGroup } from './group.ts';
import { groupRecords } from './records.ts';
import type { GroupRecords } from './records.ts';
import { filesIn, groupServer, killServer } from './server.ts';
import type { PublishedShare } from './share-state.ts';

export interface NfsPartOptions {
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

export function createNfsPart(options: NfsPartOptions): HostPart<PublishedShare> {
  const { dataDir, port, log } = options;
  const groups = new Map<string, NfsGroup>();
  const groupOf = new Map<string, string>();
  let running: Running | null = null;
  /** Whether servers may run. */
  let mayServe = false;

  const current = (): Running => {
    if (!running) throw new Error('the part has not started');
    return running;
  };

  const balance = groupBalance({ groups, current, log });

  const groupAt = (address: string): NfsGroup => {
    const found = groups.get(address);
    if (found) return found;
    const { region, storage, program, records, addresses } = current();
    const { regionId, self } = region;
    const folder = filesIn(dataDir, address);
    const created = nfsGroup({
      ...{ address, host: self, records, addresses, log },
      mayServe: () => mayServe,
      createServer: (beforeStart) =>
        groupServer({
          settings: {
            ...{ regionId, group: address, port, pool: storage.pool, user: storage.user, cephConf: storage.conf },
            clientConf: join(folder, 'ceph.conf'),
          },
          ...{ folder, program, removal: addresses.removal(address), beforeStart, log },
        }),
    });
    groups.set(address, created);
    return created;
  };

  const setShare = (id: string, share: PublishedShare | null): NfsGroup | null => {
    const before = groupOf.get(id);
    if (before !== undefined && before !== share?.group) groups.get(before)?.shares.delete(id);
    if (!share) {
      groupOf.delete(id);
      return before === undefined ? null : (groups.get(before) ?? null);
    }
    groupOf.set(id, share.group);
    const group = groupAt(share.group);
    group.shares.set(id, share);
    return group;
  };

  const stopServing = async () => {
    mayServe = false;
    balance.stop();
    const ended = await Promise.all([...groups.values()].map((group) => group.end()));
    const bridge = running?.bridge;
    const released = Promise.allSettled(ended.map((each) => each.released)).then(() => bridge?.stop());
    // Otherwise the next host waits until the locks expire.
    await Promise.race([released, sleep(RELEASE_MS, undefined, { ref: false })]);
  };

  return {
    kind: 'file_share',
    title: 'file shares',

    async start(region) {
      const { storage, regionId } = region;
      if (!storage) throw new Error('file shares of several hosts need shared storage');
      const program = requireGanesha();
      await running?.bridge.stop();
      const bridge = options.connect(storage);
      // The bridge connects until it succeeds; until then the locks cannot be taken.
      bridge.start().catch((err: unknown) => log.error({ err }, 'the storage cluster does not respond'));
      const records = groupRecords({ bridge, regionId, pool: storage.pool, filesystem: storage.filesystem });
      const addresses = groupAddresses(interfaceOf(selfOf(region)), log);
      running = { region, storage, bridge, program, records, addresses };
      await addresses.prepare();
      for (const address of new Set([...region.settings.nfsAddresses, ...groups.keys()])) {
        await killServer(filesIn(dataDir, address));
        await addresses.remove(address);
      }
      groups.clear();
      groupOf.clear();
    },

    async converge(states) {
      for (const id of [...groupOf.keys()]) if (!states.has(id)) setShare(id, null);
      for (const [id, state] of states) setShare(id, state);
      return new Map<string, DriverError>();
    },

    async apply(id, state, signal) {
      refuseAborted(signal);
      await setShare(id, state)?.refresh(id);
    },

    async serve() {
      mayServe = true;
      balance.start();
    },

    async hostsChanged(region) {
      running = { ...current(), region };
    },

    stopServing,

    async drain(signal) {
      balance.refuseGroups();
      for (;;) {
        const group = [...groups.values()].find((each) => each.isHeld());
        if (!group) return;
        const { self } = current().region;
        while (balance.placement().eligible.every((name) => name === self)) {
          refuseAborted(signal);
          await sleep(POLL_MS);
        }
        await balance.handOver(group);
        await untilServed(current().records, group.address, signal);
      }
    },

    status() {
      const held = [...groups.values()].filter((group) => group.isServing());
      const fault = running?.bridge.fault();
      if (fault != null) return { driver: 'ganesha', real: true, healthy: false, detail: fault };
      const faults = held.map((group) => group.fault()).filter((fault) => fault !== null);
      return {
        ...{ driver: 'ganesha', real: true, healthy: faults.length === 0 },
        detail: faults.join('; ') || `serves ${held.length} of ${groups.size} NFS groups`,
      };
    },

    holds: () => [...groups.values()].filter((group) => group.isServing()).map(({ address }) => `nfs ${address}`),
  };
}

/** How long a draining host waits until another one serves a group, before it continues with the next one. */
const DRAIN_STEP_MS = 15_000;

async function untilServed(records: GroupRecords, group: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + DRAIN_STEP_MS;
  while (Date.now() < deadline) {
    refuseAborted(signal);
    const servers = await records.servers(group).catch(() => new Map());
    if ([...servers.values()].some(({ serving }) => serving)) return;
    await sleep(POLL_MS);
  }
}
