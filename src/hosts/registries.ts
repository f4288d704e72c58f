/**
 * Registries of a region of several hosts: every host serves the images of one shared directory with the same settings and
 * secrets. The worker publishes these settings, and itself removes images and collects garbage, once for the region.
 */
import { isDeepStrictEqual } from 'node:util';
import type { DriverError } from '../errors/driver-error.ts';
import type { RegistryDriver, RegistryHosting } from '../drivers/registry.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import { driverLifecycle } from './driver-lifecycle.ts';
import { asDriverError } from './observations.ts';
import type { HostPart, Publisher } from './part.ts';

export const registriesTitle = 'registries';
/** The only published state of its kind. */
const id = 'hosting';
const publishMs = 60_000;

/** Serves all registries of the region while it has settings. */
export function registryPart(open: () => Promise<RegistryDriver>): HostPart<RegistryHosting> {
  const { running, lifecycle } = driverLifecycle({ title: registriesTitle, open });
  return {
    ...{ kind: 'registry_hosting', title: registriesTitle },
    ...lifecycle,
    async converge(states) {
      const failed = new Map<string, DriverError>();
      for (const [each, hosting] of states) {
        await running()
          .configure(hosting)
          .catch((error: unknown) => failed.set(each, asDriverError(error)));
      }
      return failed;
    },
    async apply(_id, hosting) {
      if (hosting) await running().configure(hosting);
    },
  };
}

/** `store`: the driver of the shared directory, which serves nothing itself. `status`: of the hosts together. */
export function createPublishedRegistryDriver(
  publisher: Publisher<RegistryHosting>,
  store: RegistryDriver,
  status: () => DriverStatus,
): RegistryDriver {
  let published: RegistryHosting | null = null;
  /** A failover of the database may have lost it. */
  const isStillPublished = async (hosting: RegistryHosting) =>
    isDeepStrictEqual((await publisher.states()).get(id), hosting);
  const configure = async (hosting: RegistryHosting) => {
    if (isDeepStrictEqual(hosting, published) && (await isStillPublished(hosting))) return;
    await publisher.publish(id, hosting, AbortSignal.timeout(publishMs));
    published = hosting;
  };
  return {
    ...{ name: 'hosts', real: true, address: store.address, status, configure },
    start: async () => undefined,
    stop: () => store.stop(),
    ...(store.release && { release: () => store.release!() }),
    list: () => store.list(),
    quarantine: (prefix) => store.quarantine(prefix),
    remove: (prefix, signal) => store.remove(prefix, signal),
    removeContents: (removal, signal) => store.removeContents(removal, signal),
    idleUploads: () => store.idleUploads(),
    collect: (requestHold, signal) => store.collect(requestHold, signal),
  };
}
