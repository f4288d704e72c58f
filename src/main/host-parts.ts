/** The parts of an agent (hosts/part.ts): what it serves on its host. published-drivers.ts has the side of the worker. */
import { balancerParts } from '../drivers/keepalived/balancer-parts.ts';
import { createCephBridge } from '../drivers/ceph/bridge.ts';
import { createNfsPart } from '../drivers/nfs-groups/part.ts';
import type { DriverContext } from '../drivers/kind.ts';
import { loadBalancerPart } from '../hosts/load-balancers.ts';
import type { HostPart } from '../hosts/part.ts';
import { registryPart } from '../hosts/registries.ts';
import type { HostedRegion } from '../resources/regions/host-configuration.ts';
import { startOneDriver } from './drivers.ts';
import { createApiCheck, createRegistryCheck } from './service-checks.ts';
import type { Settings } from './settings.ts';

interface HostPartsContext {
  settings: Settings;
  region: HostedRegion;
  /** What the drivers of this host are created with. */
  context: DriverContext;
}

/** In the order in which they start. */
export function createHostParts({ settings, region, context }: HostPartsContext): HostPart[] {
  const { apiAddress, registryAddress } = region.settings;
  const balancers = balancerParts({
    ...{ dataDir: settings.dataDir, log: context.log, partOf: loadBalancerPart },
    checkApi: apiAddress === null ? null : createApiCheck(settings),
    checkRegistry: registryAddress === null ? null : registryCheck(settings, context),
    open: (peers) => startOneDriver('loadBalancer', settings, { ...context, peers }),
  });
  const shares = hasNfsGroups(region, settings) ? [fileSharePart(settings, context)] : [];
  const moving = withMovingRegistries(settings, region);
  const registries = region.storage ? [registryPart(() => startOneDriver('registry', moving, context))] : [];
  return [...balancers, ...shares, ...registries];
}

/** Why the volumes and registries of a region are simulated. */
export const withoutStorage = ({ regionId }: HostedRegion) => `region ${regionId} has no storage that its hosts share`;
/** Why its file shares are, if no setting says so. */
export const withoutNfsGroups = (region: HostedRegion) => `${withoutStorage(region)}, or no nfs_addresses`;

/** Whether the hosts of a region serve file shares. */
export function hasNfsGroups({ storage, settings: { nfsAddresses } }: HostedRegion, { drivers }: Settings): boolean {
  return storage !== null && nfsAddresses.length > 0 && drivers.fileShare.driver !== 'simulated';
}

function fileSharePart({ drivers }: Settings, { dataDir, log }: DriverContext) {
  return createNfsPart({
    ...{ dataDir, log, port: drivers.fileShare.port },
    connect: ({ conf, user }) => createCephBridge({ conf, user, log }),
  });
}

function registryCheck({ drivers: { registry } }: Settings, { acmeCertificateFor }: DriverContext) {
  return createRegistryCheck(registry, registry.tls !== null || acmeCertificateFor(registry.host) !== null);
}

function withMovingRegistries(settings: Settings, region: HostedRegion): Settings {
  const moves = region.settings.registryAddress !== null;
  return { ...settings, drivers: { ...settings.drivers, registry: { ...settings.drivers.registry, moves } } };
}
