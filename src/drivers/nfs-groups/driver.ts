/**
 * File shares of a region of several hosts: subvolumes of CephFS, which the hosts export (part.ts). This driver runs in
 * the region's worker: it does what is done once for the region, publishes what the hosts must serve, and waits for them.
 *
 * Invariant: `apply` and `remove` resolve when no host, reachable or not, can serve an older state. Publishing waits for the
 * hosts whose lease is valid. A host that is away may still run a server; it has a record (records.ts), which is
 * removed only after the server has ended or was fenced. So this driver waits until every record has the new state.
 */
import type { Publisher } from '../../hosts/part.ts';
import type { DriverStatus } from '../../platform/driver-status.ts';
import type { Logger } from '../../platform/log.ts';
import { refuseAborted } from '../command.ts';
import type { DesiredFileShare, FileShareDriver } from '../file-share.ts';
import { accessNetwork, clientsOf } from '../ganesha/networks.ts';
import { connectionPoint } from '../ganesha/configuration.ts';
import { oneAtATime } from '../../platform/turns.ts';
import type { CephBridge } from '../ceph/bridge.ts';
import { cephSubvolumes, type SharePlace } from '../ceph/subvolumes.ts';
import { groupRecords } from './records.ts';
import { servedWait } from './served-wait.ts';
import { stampOf, type PublishedShare } from './share-state.ts';

interface CephFileShareOptions extends SharePlace {
  /** The driver starts and stops it. */
  bridge: CephBridge;
  publisher: Publisher<PublishedShare>;
  /** How long to wait for the server of a group. Default: 20. */
  serverSeconds?: number;
  log: Logger;
}

/** `start` does not wait for the cluster; operations do, and are retried. */
export function createCephFileShareDriver(options: CephFileShareOptions): FileShareDriver {
  const { bridge, filesystem, publisher, log, serverSeconds = 20 } = options;
  const subvolumes = cephSubvolumes(options);
  const records = groupRecords(options);
  const untilServed = servedWait(records, serverSeconds);
  const inTurn = oneAtATime();
  /** What is published. */
  let states = new Map<string, PublishedShare>();
  /** Shares whose published state does not decrypt, because the key file was lost. `apply` publishes them again. */
  let undecodable = new Set<string>();

  const findUndecodable = async (): Promise<string[]> => {
    const found = await publisher.undecodable();
    for (const [id, err] of found) {
      if (!undecodable.has(id)) log.error({ err, id }, 'the published state of a file share cannot be decrypted');
    }
    undecodable = new Set(found.keys());
    return [...undecodable];
  };

  const unpublish = async (id: string, signal: AbortSignal): Promise<void> => {
    const published = states.get(id) ?? (await publisher.states()).get(id);
    await publisher.publish(id, null, signal);
    // A worker that died here has unpublished the share, and with it the name of its group. A state that does not decrypt
    // has no readable name, either.
    const groups = published ? [published.group] : await records.groups();
    for (const group of groups) await untilServed(group, id, { stamp: null, sizeGib: null, signal });
    states.delete(id);
    undecodable.delete(id);
  };

  const apply = async (desired: DesiredFileShare, signal: AbortSignal) => {
    refuseAborted(signal);
    const { id, rootSquash } = desired;
    if (!desired.export) throw new Error('a share of a region of several hosts has a place in an NFS group');
    const { group, exportId } = desired.export;
    const access = desired.access.map(({ network, mode }) => ({ network, mode }));
    // Rejects networks that Ganesha cannot have before anything changes.
    for (const { network } of access) clientsOf(accessNetwork(network));
    const { sizeGib: gib, settledGib } = desired;
    const { path, user, key, sizeGib, hasQuota } = await subvolumes.ensure(id, { gib, settledGib });
    refuseAborted(signal);
    const shownGib = hasQuota ? sizeGib : null;
    const state: PublishedShare = {
      ...{ group, exportId, filesystem, path, user, key, rootSquash, access, sizeGib: shownGib },
    };
    const stamp = stampOf(state);
    await publisher.publish(id, state, signal);
    undecodable.delete(id);
    await untilServed(group, id, { stamp, sizeGib: shownGib, signal });
    states.set(id, state);
    return { connectionPoint: connectionPoint(group, id), sizeGib };
  };

  return {
    name: 'ceph',
    real: true,
    status: () => statusOf(bridge.problem() ?? problemOf(undecodable.size), filesystem),
    async start() {
      // The bridge connects until it succeeds; until then operations are retried.
      bridge.start().catch((err: unknown) => log.error({ err }, 'the storage cluster does not respond'));
      states = await publisher.states();
      await findUndecodable();
    },
    stop: bridge.stop,
    apply: (desired, signal) => inTurn(desired.id, () => apply(desired, signal)),
    remove: (id, signal) =>
      inTurn(id, async () => {
        refuseAborted(signal);
        await unpublish(id, signal);
        await subvolumes.remove(id);
      }),
    quarantine: (id) =>
      inTurn(id, async () => {
        await unpublish(id, new AbortController().signal);
        await subvolumes.quarantine(id);
      }),
    list: async () => [...new Set([...states.keys(), ...undecodable, ...(await subvolumes.list())])].sort(),
    findDamaged: findUndecodable,
    usage: subvolumes.usage,
  };
}

function problemOf(undecodable: number): string | null {
  if (undecodable === 0) return null;
  return `the published states of ${undecodable} file shares cannot be decrypted and are published again; see the log for their ids`;
}

function statusOf(problem: string | null, filesystem: string): DriverStatus {
  const detail = `subvolumes of the CephFS filesystem ${filesystem}, exported by NFS groups`;
  return { driver: 'ceph', real: true, healthy: problem === null, detail: problem ?? detail };
}
