/**
 * File shares served over NFS. `apply` works in two steps: the storage of each share by itself (several at a time),
 * then one reload of Ganesha for all that wait. It resolves when Ganesha has confirmed this share's export and rules.
 *
 * A share is exported exactly when it has a spec, and its storage is ready before its spec is written: Ganesha never
 * exports an empty mount point. In the other direction the export is confirmed gone before the storage is touched.
 *
 * How it fails: a share whose image cannot be mounted at the start is left out of the exports and makes the status
 * unhealthy; its next `apply` tries again. The others are served.
 */
import type { Logger } from 'pino';
import { hostError, refuseAborted } from '../command.ts';
import { DriverError, type DriverStatus } from '../driver.ts';
import type { DesiredFileShare, FileShareDriver, ObservedFileShare } from '../file-share.ts';
import { limited, oneAtATime } from '../turns.ts';
import { exportPath, renderExport, type ServerSettings } from './configuration.ts';
import { findGanesha, type GaneshaFinding } from './detect.ts';
import { directoryStorage } from './directories.ts';
import { imageStorage } from './images.ts';
import { layoutOf, makeFolders } from './layout.ts';
import type { Reload } from './reload-log.ts';
import { nfsServer } from './server.ts';
import { dropSpec, exportIds, loadSpecs, saveSpec, type Spec } from './specs.ts';

export interface GaneshaDriverOptions {
  dataDir: string;
  /** The name or address that clients mount from. */
  host: string;
  port: number;
  mountPort: number;
  log: Logger;
  /** What the host can do; looked up when it is not given. */
  finding?: GaneshaFinding;
}

export interface GaneshaDriver extends FileShareDriver {
  /** Ends without disturbing anybody: Ganesha and the mounts stay, and the next process adopts them. */
  release(): Promise<void>;
}

const PREPARED_AT_A_TIME = 4;

export function createGaneshaDriver(options: GaneshaDriverOptions): GaneshaDriver {
  const { dataDir, host, log, finding = findGanesha() } = options;
  if (!finding.programs) throw new Error(finding.detail);
  const layout = layoutOf(dataDir);
  const storage = finding.sizeEnforced ? imageStorage(layout, log) : directoryStorage(layout);
  const preparing = limited(PREPARED_AT_A_TIME);
  const inTurn = oneAtATime();

  let specs = new Map<string, Spec>();
  let numbers = exportIds([]);
  /** Specs that Ganesha has confirmed, by identity: a changed share has another object. */
  const confirmed = new Map<string, Spec>();
  const broken = new Set<string>();

  const renderExports = (settings: ServerSettings) =>
    [...specs.values()]
      .filter(({ id }) => !broken.has(id))
      .map((spec) => renderExport(spec, storage.path(spec.id), settings))
      .join('');
  const server = nfsServer({ ...options, layout, programs: finding.programs, renderExports });

  function confirm(spec: Spec, { inForce, complaints }: Reload): void {
    if (inForce.get(spec.exportId)?.pseudo === exportPath(spec.id)) {
      confirmed.set(spec.id, spec);
      return;
    }
    throw new DriverError(`NFS-Ganesha did not take the export of ${spec.id}: ${complaints.join(' | ')}`, {
      customerMessage: 'The file server could not take this share just now.',
      retryable: true,
    });
  }

  async function apply(desired: DesiredFileShare, signal: AbortSignal): Promise<ObservedFileShare> {
    const { id } = desired;
    // Refuses bad networks and ids before anything is changed.
    renderExport({ ...desired, exportId: 1, device: null }, storage.path(id), server.settings());
    const changed = await preparing(() => prepare(desired, signal));
    const spec = specs.get(id);
    if (!spec) throw new Error('a prepared share has a spec');
    if (confirmed.get(id) !== spec || !server.isUp()) confirm(spec, await server.reload());
    return { connectionPoint: `${urlHost(host)}:${exportPath(id)}`, sizeGib: spec.sizeGib, changed };
  }

  async function prepare(desired: DesiredFileShare, signal: AbortSignal): Promise<string[]> {
    refuseAborted(signal);
    const { id } = desired;
    const before = specs.get(id);
    const gib = Math.max(desired.sizeGib, before?.sizeGib ?? 0);
    const changed = await storage.ensure(id, { gib, settledGib: before?.sizeGib }, signal);
    refuseAborted(signal);
    // What is mounted again (somebody unmounted it, or it was broken) must be exported again.
    if (broken.delete(id) || (before && changed.length > 0)) confirmed.delete(id);
    const device = storage.deviceOf(id);
    const spec: Spec = { ...pick(desired), sizeGib: gib, exportId: numbers.take(id), device };
    const differences = before ? differencesOf(before, spec) : ['export created'];
    if (differences.length === 0) return changed;
    await saveSpec(layout, spec);
    specs.set(id, spec);
    return [...changed, ...differences];
  }

  async function takeAway(id: string, { aside }: { aside: boolean }): Promise<void> {
    if (!specs.has(id) && !(await storage.list()).includes(id)) return;
    specs.delete(id);
    confirmed.delete(id);
    broken.delete(id);
    await dropSpec(layout, id, { aside });
    const { inForce } = await server.reload();
    if ([...inForce.values()].some(({ pseudo }) => pseudo === exportPath(id))) {
      throw hostError(`NFS-Ganesha still exports ${id}`, null);
    }
    numbers.release(id);
    await storage.remove(id, { aside });
  }

  async function bringBack(): Promise<void> {
    await makeFolders(layout);
    await storage.tidy();
    specs = await loadSpecs(layout, log);
    numbers = exportIds(specs.values());
    for (const { id, device } of specs.values()) if (device !== null) storage.reserve(id, device);
    const mounting = [...specs.values()].map((spec) =>
      preparing(() => storage.ensure(spec.id, { gib: spec.sizeGib, settledGib: spec.sizeGib })).catch(
        (err: unknown) => {
          broken.add(spec.id);
          log.error({ fileShare: spec.id, err }, 'file share cannot be mounted');
        },
      ),
    );
    await Promise.all(mounting);
    await server.start();
    const reloaded = await server.reload();
    for (const spec of specs.values()) {
      if (broken.has(spec.id)) continue;
      try {
        confirm(spec, reloaded);
      } catch (err) {
        broken.add(spec.id);
        log.error({ fileShare: spec.id, err }, 'file share cannot be exported');
      }
    }
  }

  async function stop(): Promise<void> {
    await server.stop();
    await storage.close();
  }

  return {
    name: 'ganesha',
    real: true,
    status: () => statusOf(finding, { isUp: server.isUp(), broken: broken.size, exports: specs.size }),
    async start() {
      try {
        await bringBack();
      } catch (err) {
        await stop().catch((second: unknown) => log.error({ err: second }, 'clearing up after a failed start failed'));
        throw hostError(`file shares cannot be served: ${(err as Error).message}`, err);
      }
    },
    stop,
    release: server.release,
    apply: (desired, signal) => guarded(inTurn(desired.id, () => apply(desired, signal))),
    async remove(id, signal) {
      refuseAborted(signal);
      await guarded(inTurn(id, () => takeAway(id, { aside: false })));
    },
    quarantine: (id) => guarded(inTurn(id, () => takeAway(id, { aside: true }))),
    list: async () => [...new Set([...specs.keys(), ...(await storage.list())])].sort(),
  };
}

function statusOf(
  finding: GaneshaFinding,
  { isUp, broken, exports }: { isUp: boolean; broken: number; exports: number },
): DriverStatus {
  const status = { driver: 'ganesha', real: true, ...(finding.remedy && { remedy: finding.remedy }) };
  if (!isUp) return { ...status, healthy: false, detail: `${finding.detail}; NFS-Ganesha is down` };
  if (broken === 0) return { ...status, healthy: true, detail: finding.detail };
  return { ...status, healthy: false, detail: `${finding.detail}; ${broken} of ${exports} shares cannot be served` };
}

function pick({ id, sizeGib, rootSquash, access }: DesiredFileShare): DesiredFileShare {
  return { id, sizeGib, rootSquash, access: access.map(({ network, mode }) => ({ network, mode })) };
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

/** Whatever fails reaches the engine as a DriverError. */
async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (err) {
    throw hostError(err instanceof Error ? err.message : String(err), err);
  }
}
