/**
 * What is done to one share. `applyShare` works in two steps: the storage of each share by itself (several at a time),
 * then one reload of Ganesha for all that wait. It resolves when Ganesha has confirmed this share's export and rules.
 *
 * A share is exported exactly when it has a spec, and its storage is ready before its spec is written: Ganesha never
 * exports an empty mount point. In the other direction the export is confirmed gone before the storage is touched.
 * A crash between any two steps leaves either storage without a spec (listed, not exported) or a spec that says less
 * than its storage holds; both are what the next call begins with. Calls about one id do not overlap (driver.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { hostError, refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import type { DesiredFileShare, ObservedFileShare } from '../file-share.ts';
import type { Turn } from '../turns.ts';
import { exportPath, renderExport, type ServerSettings } from './configuration.ts';
import { type Layout, makeFolders } from './layout.ts';
import type { Reload } from './reload-log.ts';
import type { NfsServer } from './server.ts';
import { dropSpec, type ExportIds, exportIds, loadSpecs, saveSpec, type Spec } from './specs.ts';
import type { ShareStorage } from './storage.ts';

export interface Shares {
  layout: Layout;
  host: string;
  log: Logger;
  storage: ShareStorage;
  server: NfsServer;
  preparing: Turn;
  beingPrepared: number;
  specs: Map<string, Spec>;
  numbers: ExportIds;
  /** Specs that Ganesha has confirmed, by identity: a changed share has another object. */
  confirmed: Map<string, Spec>;
  /** Shares with a spec that cannot be exported. */
  broken: Set<string>;
}

/** How long a reload waits for shares that are being prepared; it waits for none when there are none. */
const GATHER_MS = 100;

export async function applyShare(
  shares: Shares,
  desired: DesiredFileShare,
  signal: AbortSignal,
): Promise<ObservedFileShare> {
  const { server, specs, storage } = shares;
  const { id } = desired;
  // Refuses bad networks and ids before anything is changed.
  renderExport({ ...desired, exportId: 1, device: null }, storage.path(id), server.settings());
  shares.beingPrepared += 1;
  const changed = await shares
    .preparing(() => prepare(shares, desired, signal))
    .finally(() => {
      shares.beingPrepared -= 1;
    });
  const spec = specs.get(id);
  if (!spec) throw new Error('a prepared share has a spec');
  if (shares.confirmed.get(id) !== spec || !server.isUp()) confirm(shares, spec, await server.reload());
  return { connectionPoint: `${urlHost(shares.host)}:${exportPath(id)}`, sizeGib: spec.sizeGib, changed };
}

async function prepare(shares: Shares, desired: DesiredFileShare, signal: AbortSignal): Promise<string[]> {
  refuseAborted(signal);
  const { id, rootSquash } = desired;
  const { storage, specs, broken, confirmed } = shares;
  const before = specs.get(id);
  const sizeGib = Math.max(desired.sizeGib, before?.sizeGib ?? 0);
  const changed = await storage.ensure(
    id,
    { gib: sizeGib, settledGib: before?.sizeGib ?? desired.settledGib ?? undefined },
    signal,
  );
  refuseAborted(signal);
  // What is mounted again (somebody unmounted it, or it was broken) must be exported again.
  if (broken.delete(id) || (before && changed.length > 0)) confirmed.delete(id);
  const access = desired.access.map(({ network, mode }) => ({ network, mode }));
  const spec: Spec = {
    id,
    sizeGib,
    rootSquash,
    access,
    exportId: shares.numbers.take(id),
    device: storage.deviceOf(id),
  };
  const differences = before ? differencesOf(before, spec) : ['export created'];
  if (differences.length === 0) return changed;
  await saveSpec(shares.layout, spec);
  specs.set(id, spec);
  return [...changed, ...differences];
}

/** Removes a share, or with `aside` keeps its data in quarantine. */
export async function takeAway(shares: Shares, id: string, { aside }: { aside: boolean }): Promise<void> {
  const { specs, storage } = shares;
  if (!specs.has(id) && !(await storage.list()).includes(id)) return;
  specs.delete(id);
  shares.confirmed.delete(id);
  shares.broken.delete(id);
  await dropSpec(shares.layout, id, { aside });
  const { inForce } = await shares.server.reload();
  if ([...inForce.values()].some(({ pseudo }) => pseudo === exportPath(id))) {
    throw hostError(`NFS-Ganesha still exports ${id}`, null);
  }
  shares.numbers.release(id);
  await storage.remove(id, { aside });
}

/** Mounts and exports everything that has a spec. One share that fails does not keep the others from it. */
export async function bringBack(shares: Shares): Promise<void> {
  const { layout, log, storage, broken } = shares;
  await makeFolders(layout);
  await storage.tidy();
  shares.specs = await loadSpecs(layout, log);
  shares.numbers = exportIds(shares.specs.values());
  const specs = [...shares.specs.values()];
  const unlessBroken = (spec: Spec, err: unknown) => {
    broken.add(spec.id);
    log.error({ fileShare: spec.id, err }, 'file share cannot be served');
  };
  for (const { id, device } of specs) if (device !== null) storage.reserve(id, device);
  await Promise.all(
    specs.map((spec) => shares.preparing(() => mountAgain(shares, spec)).catch((err) => unlessBroken(spec, err))),
  );
  await shares.server.start();
  const reload = await shares.server.reload();
  for (const spec of shares.specs.values()) {
    try {
      if (!broken.has(spec.id)) confirm(shares, spec, reload);
    } catch (err) {
      unlessBroken(spec, err);
    }
  }
}

async function mountAgain({ storage, layout, specs }: Shares, spec: Spec): Promise<void> {
  await storage.ensure(spec.id, { gib: spec.sizeGib, settledGib: spec.sizeGib });
  const device = storage.deviceOf(spec.id);
  if (device === spec.device) return;
  await saveSpec(layout, { ...spec, device });
  specs.set(spec.id, { ...spec, device });
}

function confirm({ confirmed }: Shares, spec: Spec, { inForce, complaints }: Reload): void {
  if (inForce.get(spec.exportId)?.pseudo === exportPath(spec.id)) {
    confirmed.set(spec.id, spec);
    return;
  }
  throw new DriverError(`NFS-Ganesha did not take the export of ${spec.id}: ${complaints.join(' | ')}`, {
    customerMessage: 'The file server could not take this share just now.',
    retryable: true,
  });
}

export function renderShares({ specs, broken, storage }: Shares, settings: ServerSettings): string {
  return [...specs.values()]
    .filter(({ id }) => !broken.has(id))
    .map((spec) => renderExport(spec, storage.path(spec.id), settings))
    .join('');
}

export async function gather(shares: Shares): Promise<void> {
  const enough = Date.now() + GATHER_MS;
  while (shares.beingPrepared > 0 && Date.now() < enough) await sleep(5);
}

function differencesOf(before: Spec, after: Spec): string[] {
  return [
    ...(before.sizeGib === after.sizeGib ? [] : [`size ${before.sizeGib} to ${after.sizeGib} GiB`]),
    ...(before.device === after.device ? [] : ['loop device']),
    ...(before.rootSquash === after.rootSquash ? [] : ['root squash']),
    ...(JSON.stringify(before.access) === JSON.stringify(after.access) ? [] : ['access rules']),
  ];
}

/** An IPv6 address stands in brackets before the path. */
function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
