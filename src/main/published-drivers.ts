/**
 * The drivers of the worker of a region of several hosts. They do what is done once for the region, and publish what its
 * hosts serve; host-parts.ts has the other side.
 */
import { join } from 'node:path';
import { createCephBridge } from '../drivers/ceph/bridge.ts';
import { createCephFileShareDriver } from '../drivers/nfs-groups/driver.ts';
import type { FileShareDriver } from '../drivers/file-share.ts';
import type { PublishedShare } from '../drivers/nfs-groups/share-state.ts';
import type { DriverContext } from '../drivers/kind.ts';
import type { Drivers } from '../drivers/kinds.ts';
import type { RegistryDriver } from '../drivers/registry.ts';
import { createPublishedLoadBalancerDriver } from '../hosts/load-balancers.ts';
import { createPublishers } from '../hosts/publisher.ts';
import type { Publisher } from '../hosts/part.ts';
import { createPublishedRegistryDriver, registriesTitle } from '../hosts/registries.ts';
import { claimPublishing } from '../hosts/store.ts';
import { type HostWatch, startHostWatch } from '../hosts/watch.ts';
import type { Keyring } from '../platform/encryption.ts';
import type { Logger } from '../platform/log.ts';
import { createListener } from '../platform/listener.ts';
import type { HostedRegion } from '../resources/regions/host-configuration.ts';
import type { Database } from './database.ts';
import { simulatedDriver, simulatedDrivers, startOneDriver } from './drivers.ts';
import { hasNfsGroups, withoutNfsGroups, withoutStorage } from './host-parts.ts';
import type { Settings } from './settings.ts';
import { endAsFailed, type ShutdownSteps } from './shutdown.ts';

interface PublishedDriversDeps {
  settings: Settings;
  database: Database;
  keyring: Keyring;
  log: Logger;
  closing: ShutdownSteps;
  region: HostedRegion;
  context: DriverContext;
}

const poolSize = 4;

/** Starts the drivers, which the caller stops. The publishers and the watch of the hosts end with `closing`. */
export async function startPublishedDrivers(
  deps: PublishedDriversDeps,
): Promise<{ drivers: Drivers; hosts: HostWatch }> {
  const { settings, database, keyring, region, context, log, closing } = deps;
  const { regionId } = region;
  const db = database.connect('cloudyard publisher', poolSize);
  const listener = createListener({ db, log });
  const epoch = await claimPublishing(db, regionId);
  const publishers = createPublishers({
    ...{ db, keyring, listener, log, regionId, epoch },
    onSuperseded: endOnce(log, regionId),
  });
  closing.push(publishers.stop);
  const hosts = await startHostWatch({ db, log, regionId, leaseSeconds: region.settings.leaseSeconds });
  closing.push(async () => hosts.stop());
  return {
    hosts,
    drivers: {
      // A kind that is not named here serves no region of several hosts.
      ...simulatedDrivers(settings, context, { detail: withoutStorage(region) }),
      fileShare: await startFileShares(deps, publishers.of('file_share')),
      loadBalancer: createPublishedLoadBalancerDriver(publishers.of('load_balancer'), () =>
        hosts.statusOf('load balancers'),
      ),
      // Done once for the region, by its worker.
      ...(region.storage && {
        volume: await startOneDriver('volume', settings, context),
        registry: createPublishedRegistryDriver(publishers.of('registry_hosting'), await startRegistryStore(deps), () =>
          hosts.statusOf(registriesTitle),
        ),
      }),
    },
  };
}

/** This worker lost the lock of the region, perhaps while it was frozen. Its supervisor starts it again, as a standby. */
function endOnce(log: Logger, regionId: number): () => void {
  let isEnding = false;
  return () => {
    if (isEnding) return;
    isEnding = true;
    log.fatal({ regionId }, 'another worker claimed the region; stopping');
    endAsFailed('SIGINT');
  };
}

/** Subvolumes, which the hosts export (drivers/nfs-groups). */
async function startFileShares(
  { settings, region, context, log }: PublishedDriversDeps,
  publisher: Publisher<PublishedShare>,
): Promise<FileShareDriver> {
  const { regionId, storage } = region;
  if (!hasNfsGroups(region, settings) || !storage) {
    return simulatedDriver('fileShare', settings, context, { detail: withoutNfsGroups(region) });
  }
  const { conf, user, pool, filesystem } = storage;
  const bridge = createCephBridge({ conf, user, log });
  const driver = createCephFileShareDriver({ bridge, regionId, pool, filesystem, publisher, log });
  await driver.start();
  return driver;
}

/** In a folder of its own: an agent may have the same data directory. It gets no settings, because it serves nothing. */
function startRegistryStore({ settings, context }: PublishedDriversDeps): Promise<RegistryDriver> {
  const registry = { ...settings.drivers.registry, serves: false };
  const dataDir = join(context.dataDir, 'worker');
  const own = { ...settings, dataDir, drivers: { ...settings.drivers, registry } };
  return startOneDriver('registry', own, { ...context, dataDir, registryHosting: null });
}
