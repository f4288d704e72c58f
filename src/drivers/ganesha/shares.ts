/**
 * The operations on one share. `applyShare` has two steps: it prepares the storage of the share (several shares at a time),
 * then reloads Ganesha once for all waiting shares. It resolves when Ganesha has confirmed the share's export and rules.
 *
 * Invariant: a share is exported exactly if it has a spec. The storage is ready before the spec is written, so Ganesha never
 * exports an empty mount point; the removal of the export is confirmed before the storage is removed. A crash between two
 * steps leaves storage without a spec (listed, not exported) or a spec with a smaller size than its storage; the next call
 * continues from either. Calls for one id do not overlap (driver.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '../../platform/log.ts';
import { hostError, refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import type { DesiredFileShare, ObservedFileShare } from '../file-share.ts';
import type { Turn } from '../../platform/turns.ts';
import { connectionPoint, exportPath, renderExport, type ServerSettings } from './configuration.ts';
import { type Layout, makeFolders } from './layout.ts';
import type { Reload } from './reload-log.ts';
import type { NfsServer } from './server.ts';
import { type ExportIds, exportIds, isStored, loadSpecs, type Spec } from './specs.ts';
import { removeSpec, saveSpec, storedIds } from '../spec-files.ts';
import type { ShareStorage } from './storage.ts';

export interface Shares {
  layout: Layout;
  host: string;
  log: Logger;
  storage: ShareStorage;
  server: NfsServer;
  preparing: Turn;
  /** The number of shares in preparation. */
  inPreparation: number;
  specs: Map<string, Spec>;
  numbers: ExportIds;
  /** Specs that Ganesha has confirmed, compared by identity: a changed share has a new object. */
  confirmed: Map<string, Spec>;
  /** Shares with a spec that cannot be exported. */
  broken: Set<string>;
  /** Why Ganesha did not confirm the exports at the start, which it may serve nevertheless; null after a reload. */
  unconfirmed: string | null;
}

/** How long a reload waits for shares in preparation. */
const PREPARATION_WAIT_MS = 100;

/** @throws DriverError: permanent for invalid networks and missing data, retryable if Ganesha did not confirm the export */
export async function applyShare(
  shares: Shares,
  desired: DesiredFileShare,
  signal: AbortSignal,
): Promise<ObservedFileShare> {
  const { server, specs, storage } = shares;
  const { id } = desired;
  // Rejects invalid networks and ids before anything changes.
  renderExport({ ...desired, exportId: 1, device: null }, storage.path(id), server.settings());
  const wasBroken = shares.broken.has(id);
  try {
    shares.inPreparation += 1;
    await shares
      .preparing(() => prepare(shares, desired, signal))
      .finally(() => {
        shares.inPreparation -= 1;
      });
    const spec = specs.get(id);
    if (!spec) throw new Error('a prepared share has a spec');
    if (shares.confirmed.get(id) !== spec || !server.isUp()) confirm(shares, spec, await reload(shares));
    return { connectionPoint: connectionPoint(shares.host, id), sizeGib: spec.sizeGib };
  } catch (err) {
    // Otherwise nothing would apply it again.
    if (wasBroken) shares.broken.add(id);
    throw err;
  }
}

async function prepare(shares: Shares, desired: DesiredFileShare, signal: AbortSignal): Promise<void> {
  refuseAborted(signal);
  const { id, rootSquash } = desired;
  const { storage, specs, broken, confirmed } = shares;
  const before = specs.get(id);
  const sizeGib = Math.max(desired.sizeGib, before?.sizeGib ?? 0);
  const isChanged = await storage.ensure(
    id,
    { gib: sizeGib, settledGib: before?.sizeGib ?? desired.settledGib ?? undefined },
    signal,
  );
  refuseAborted(signal);
  // A share that was mounted again (after an unmount by another program, or a failure) must be exported again.
  if (broken.delete(id) || (before && isChanged)) confirmed.delete(id);
  const access = desired.access.map(({ network, mode }) => ({ network, mode }));
  const spec: Spec = {
    id,
    sizeGib,
    rootSquash,
    access,
    exportId: shares.numbers.take(id),
    device: storage.deviceOf(id),
  };
  if (isDeepStrictEqual(before, spec) && (await isStored(shares.layout, id))) return;
  await saveSpec(shares.layout, spec);
  specs.set(id, spec);
}

/** Removes a share, or moves its data to quarantine. */
export async function removeShare(shares: Shares, id: string, { quarantine }: { quarantine: boolean }): Promise<void> {
  const { specs, storage } = shares;
  if (!specs.has(id) && !(await storage.list()).includes(id)) return;
  specs.delete(id);
  shares.confirmed.delete(id);
  shares.broken.delete(id);
  await removeSpec(shares.layout, id, { quarantine });
  const { inForce } = await reload(shares);
  if ([...inForce.values()].some(({ pseudo }) => pseudo === exportPath(id))) {
    throw hostError(`NFS-Ganesha still exports ${id}`, null);
  }
  shares.numbers.release(id);
  await storage.remove(id, { quarantine });
}

/** Shares that cannot be served, and those whose spec is missing or was malformed at the start. */
export async function findDamaged({ layout, broken, specs, storage }: Shares): Promise<string[]> {
  // Without their folder, all specs are missing, and an apply needs it.
  await makeFolders(layout);
  const stored = new Set(await storedIds(layout));
  const ids = new Set([...specs.keys(), ...(await storage.list())]);
  return [...ids].filter((id) => broken.has(id) || !specs.has(id) || !stored.has(id));
}

/** Mounts and exports every share that has a spec. A share that fails does not affect the others. */
export async function restoreShares(shares: Shares): Promise<void> {
  const { layout, log, storage } = shares;
  await makeFolders(layout);
  await storage.prepare();
  shares.specs = await loadSpecs(layout, log);
  shares.numbers = exportIds(shares.specs.values());
  const specs = [...shares.specs.values()];
  for (const { id, device } of specs) if (device !== null) storage.reserve(id, device);
  await Promise.all(
    specs.map((spec) => shares.preparing(() => remount(shares, spec)).catch((err) => markBroken(shares, spec, err))),
  );
  await shares.server.start();
  await confirmExports(shares);
}

/**
 * Reloads Ganesha and checks that it confirms all exports. If it does not, `unconfirmed` says why: on a full disk it cannot
 * write the log that confirms, but serves what it has loaded.
 */
export async function confirmExports(shares: Shares): Promise<void> {
  const specs = [...shares.specs.values()];
  const reloaded = await reload(shares).catch((err: unknown) => {
    shares.log.error({ err }, 'NFS-Ganesha did not confirm the exports');
    shares.unconfirmed = (err as Error).message;
  });
  if (!reloaded) return;
  for (const spec of specs) {
    // A share that was changed during the reload is confirmed by its `apply`.
    if (shares.broken.has(spec.id) || shares.specs.get(spec.id) !== spec) continue;
    try {
      confirm(shares, spec, reloaded);
    } catch (err) {
      markBroken(shares, spec, err);
    }
  }
}

function markBroken({ broken, log }: Shares, spec: Spec, err: unknown): void {
  broken.add(spec.id);
  log.error({ fileShare: spec.id, err }, 'the file share cannot be served');
}

async function remount({ storage, layout, specs }: Shares, spec: Spec): Promise<void> {
  await storage.ensure(spec.id, { gib: spec.sizeGib, settledGib: spec.sizeGib });
  const device = storage.deviceOf(spec.id);
  if (device === spec.device) return;
  await saveSpec(layout, { ...spec, device });
  specs.set(spec.id, { ...spec, device });
}

async function reload(shares: Shares): Promise<Reload> {
  const reloaded = await shares.server.reload();
  shares.unconfirmed = null;
  return reloaded;
}

function confirm({ confirmed }: Shares, spec: Spec, { inForce, errors }: Reload): void {
  if (inForce.get(spec.exportId)?.pseudo === exportPath(spec.id)) {
    confirmed.set(spec.id, spec);
    return;
  }
  throw new DriverError(`NFS-Ganesha did not accept the export of ${spec.id}: ${errors.join(' | ')}`, {
    customerMessage: 'the file server did not accept this share',
    retryable: true,
  });
}

/** The exports of all shares that can be served. */
export function renderShares({ specs, broken, storage }: Shares, settings: ServerSettings): string {
  return [...specs.values()]
    .filter(({ id }) => !broken.has(id))
    .map((spec) => renderExport(spec, storage.path(spec.id), settings))
    .join('');
}

/** Waits for shares that are nearly ready, so that one reload serves them all. */
export async function awaitPreparation(shares: Shares): Promise<void> {
  const deadline = performance.now() + PREPARATION_WAIT_MS;
  while (shares.inPreparation > 0 && performance.now() < deadline) await sleep(5);
}
