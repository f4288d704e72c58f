/** The storage of a region (`storage` of the regions file): which drivers use it, and whether it works. */
import { type CephBridge, createCephBridge } from '../drivers/ceph/bridge.ts';
import { clusterHealth, poolSpace } from '../drivers/ceph/commands.ts';
import { imagesOf } from '../drivers/ceph/images.ts';
import type { RegionStorage } from '../drivers/kind.ts';
import { type DriverSettings, hostDriverKinds } from '../drivers/kinds.ts';
import { hasReserve, inGib } from '../platform/disk-space.ts';
import { silentLogger } from '../platform/log.ts';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { configurationFiles, readConfiguration } from './configuration.ts';
import type { Finding } from './finding.ts';
import type { Settings } from './settings.ts';

const kinds: Record<string, { forStorage?(settings: unknown, storage: RegionStorage): unknown }> = hostDriverKinds;

/** The settings of a process that works for a region with this storage; null: its data is in the data directory. */
export function withStorage(settings: Settings, storage: RegionStorage | null): Settings {
  if (!storage) return settings;
  const drivers = Object.entries(settings.drivers).map(([name, own]) => [
    name,
    kinds[name]?.forStorage?.(own, storage) ?? own,
  ]);
  return { ...settings, drivers: Object.fromEntries(drivers) as DriverSettings };
}

/** @throws if the regions of one worker have different storages, because a process has one driver of each kind */
export function storageOf(regions: RegionConfiguration[], regionIds: number[]): RegionStorage | null {
  const own = regions.filter(({ id }) => regionIds.includes(id));
  const [first] = own;
  const other = own.find(({ storage }) => JSON.stringify(storage) !== JSON.stringify(first?.storage));
  if (!other) return first?.storage ?? null;
  throw new Error(
    `regions ${first!.id} and ${other.id} have different storage: start one worker for each ("cloudyard worker --region N")`,
  );
}

/** The regions of the regions file; none if it cannot be read, which the start reports. */
export function regionsOf(settings: Settings): RegionConfiguration[] {
  try {
    return readConfiguration(configurationFiles(settings), silentLogger).regions;
  } catch {
    return [];
  }
}

/** Connects to the storage of each region. */
export async function checkStorage(regions: RegionConfiguration[], { diskReserve }: Settings): Promise<Finding[]> {
  const stored = regions.flatMap(({ id, storage }) => (storage ? { id, storage } : []));
  return Promise.all(stored.map(({ id, storage }) => checkCeph(`storage of region ${id}`, storage, diskReserve)));
}

async function checkCeph(name: string, { conf, user, pool }: RegionStorage, reserve: number): Promise<Finding> {
  const command = `ceph --conf ${conf} --id ${user}`;
  const bridge = createCephBridge({ conf, user, log: silentLogger });
  try {
    await bridge.start();
    return await checkPool(name, bridge, pool, { reserve, command });
  } catch (error) {
    return { name, ok: false, detail: (error as Error).message, remedy: `${command} status` };
  } finally {
    await bridge.stop();
  }
}

async function checkPool(
  name: string,
  bridge: CephBridge,
  pool: string,
  { reserve, command }: { reserve: number; command: string },
): Promise<Finding> {
  const [space, health] = await Promise.all([poolSpace(bridge, pool, reserve), clusterHealth(bridge)]);
  await imagesOf(bridge, pool).list();
  const detail = `pool ${pool}: ${inGib(space.freeBytes)} of ${inGib(space.totalBytes)} free; ${health}`;
  if (!hasReserve(space)) return { name, ok: false, detail, remedy: `${command} df` };
  // A warning, such as a missing OSD, leaves the cluster in service.
  const ok = !health.startsWith('HEALTH_ERR');
  return { name, ok, detail, remedy: `${command} health detail` };
}
