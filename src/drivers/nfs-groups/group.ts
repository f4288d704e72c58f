/**
 * One NFS group on this host: takes it over, serves it, and gives it up.
 *
 * A takeover: lock, record (records.ts), fence the earlier servers, start Ganesha, probe it, add the address, announce it. A
 * crash between two steps leaves a lock that expires and a record that the next holder removes after it has fenced.
 *
 * Invariant: the record names every state that Ganesha may serve. Changes are recorded as uncertain before a reload and as
 * certain after it. Once clients reach the server, a share that has not responded is uncertain.
 */
import { hostError } from '../command.ts';
import { DriverError } from '../driver.ts';
import { exportPath } from '../ganesha/configuration.ts';
import type { Reload } from '../ganesha/reload-log.ts';
import { limited, shared } from '../../platform/turns.ts';
import { keepHealthy } from './health.ts';
import { type PublishedShare, stampOf } from './share-state.ts';
import { noteSizes, sizesOf, untilSizeShown } from './sizes.ts';
import { beginTenure, type Ended, type Tenure, type TenureOptions } from './tenure.ts';

/** Equals no stamp. */
const UNCERTAIN = 'uncertain';

/** Serves nothing before `takeOver`. */
export function nfsGroup(options: Omit<TenureOptions, 'onEnd'>) {
  const { address, log } = options;
  const shares = new Map<string, PublishedShare>();
  const inTurn = limited(1);
  let tenure: Tenure | null = null;

  const takeOver = async (): Promise<boolean> => {
    if (tenure) return true;
    const began = performance.now();
    const mine = await beginTenure({ ...options, onEnd: () => void (tenure === mine && (tenure = null)) });
    if (!mine) return false;
    tenure = mine;
    try {
      await begin(mine, new Map(shares));
    } catch (err) {
      await mine.end((err as Error).message);
      throw err;
    }
    const confirm = shared(() => inTurn(() => confirmResponding(mine)));
    keepHealthy(mine, shares, { confirm, log });
    const ms = Math.round(performance.now() - began);
    log.info({ nfsGroup: address, shares: shares.size, ms }, 'the group is served');
    return true;
  };

  /** Callers that arrive during a reload share the next one. */
  const reload = shared(() =>
    inTurn(async () => {
      const mine = tenure;
      if (!mine?.isServing || mine.hasEnded()) return;
      if (shares.size > 0) return Promise.race([reloadServer(mine, new Map(shares)), mine.over]);
      const ended = await mine.end('the last share was removed');
      await ended.released;
    }),
  );

  const recordSizes = shared(() =>
    inTurn(async () => {
      if (tenure && !tenure.hasEnded()) await tenure.record(tenure.served);
    }),
  );

  return {
    address,
    /** The shares that it should have. A server that runs follows with `refresh`. */
    shares,
    /** Whether this host has the lock. */
    isHeld: () => tenure !== null,
    /** Whether clients reach it here. */
    isServing: () => tenure?.isServing === true && !tenure.hasEnded(),
    /** How many shares do not respond here; null: all do. */
    problem(): string | null {
      const silent = tenure?.isServing ? silentShares(tenure).length : 0;
      return silent === 0 ? null : `${silent} of ${shares.size} shares at ${address} do not respond`;
    },
    /** False: another host has the lock. @throws DriverError if a step failed; then the group is free again */
    takeOver: () => inTurn(takeOver),
    /** Resolves when a server of this host serves `shares`. @throws DriverError if it does not serve this one with its size */
    async refresh(id: string): Promise<void> {
      const before = tenure;
      try {
        await reload();
      } catch (err) {
        // The next server starts with the new state.
        if (before?.hasEnded()) return;
        throw err;
      }
      const share = shares.get(id);
      if (!tenure?.isServing || !share) return;
      if (tenure.served.get(id) !== stampOf(share)) throw notAccepted(id);
      if (await untilSizeShown(tenure, id, share)) await recordSizes();
    },
    /** Stops serving; resolves when nothing of this host serves. */
    end: async (): Promise<Ended> => (tenure ? tenure.end('requested') : { released: Promise.resolve() }),
  };
}

export type NfsGroup = ReturnType<typeof nfsGroup>;

function notAccepted(id: string): DriverError {
  return new DriverError(`NFS-Ganesha did not accept the export of ${id}`, {
    customerMessage: 'the file server did not accept this share',
    retryable: true,
  });
}

function silentShares({ served, healthy }: Tenure): string[] {
  return [...served.keys()].filter((id) => !healthy.has(id));
}

async function begin(tenure: Tenure, shares: ReadonlyMap<string, PublishedShare>): Promise<void> {
  const stamps = stampsOf(shares);
  await tenure.record(stamps);
  await tenure.addAddress('addLocally');
  tenure.healthy = await tenure.server.start(shares);
  await tenure.addAddress('add');
  tenure.requireValid();
  tenure.isServing = true;
  // It has read the quotas after the worker set them.
  tenure.sizes = sizesOf(shares);
  tenure.unconfirmed = new Map([...stamps].filter(([id]) => !tenure.healthy.has(id)));
  tenure.served = new Map([...stamps].map(([id, stamp]) => [id, tenure.healthy.has(id) ? stamp : UNCERTAIN]));
  await tenure.record(tenure.served);
}

/** Records the shares that did not respond when Ganesha started and do so now. */
async function confirmResponding(tenure: Tenure): Promise<void> {
  const responding = [...tenure.unconfirmed].filter(([id]) => tenure.healthy.has(id));
  if (responding.length === 0 || tenure.hasEnded()) return;
  const served = new Map([...tenure.served, ...responding]);
  await tenure.record(served);
  tenure.served = served;
  for (const [id] of responding) tenure.unconfirmed.delete(id);
}

async function reloadServer(tenure: Tenure, shares: ReadonlyMap<string, PublishedShare>): Promise<void> {
  const stamps = stampsOf(shares);
  const all = new Set([...stamps.keys(), ...tenure.served.keys()]);
  const changed = [...all].filter((id) => stamps.get(id) !== tenure.served.get(id));
  if (changed.length === 0) return;
  for (const [id, stamp] of tenure.unconfirmed) if (stamps.get(id) !== stamp) tenure.unconfirmed.delete(id);
  tenure.served = new Map([...tenure.served, ...changed.map((id) => [id, UNCERTAIN] as const)]);
  await tenure.record(tenure.served);
  const { inForce } = await tenure.server.reload(shares);
  const stale = changed.filter((id) => !shares.has(id) && isExported(inForce, id));
  if (stale.length > 0) throw hostError(`NFS-Ganesha still exports ${stale.join(', ')}`, null);
  // Of an export that Ganesha did not accept, it may serve an older state.
  tenure.served = new Map(
    [...stamps].map(([id, stamp]) => [id, isExported(inForce, id, shares.get(id)!.exportId) ? stamp : UNCERTAIN]),
  );
  tenure.unconfirmed.clear();
  await noteSizes(tenure, new Map([...shares].filter(([id]) => changed.includes(id))));
  await tenure.record(tenure.served);
}

function stampsOf(shares: ReadonlyMap<string, PublishedShare>): Map<string, string> {
  return new Map([...shares].map(([id, share]) => [id, stampOf(share)]));
}

function isExported(inForce: Reload['inForce'], id: string, exportId?: number): boolean {
  const path = exportPath(id);
  if (exportId !== undefined) return inForce.get(exportId)?.pseudo === path;
  return [...inForce.values()].some(({ pseudo }) => pseudo === path);
}
