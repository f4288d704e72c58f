/** What the drivers of a worker or an agent are created with. */
import type { DriverContext } from '../drivers/kind.ts';
import { acmeFollowerFor } from './certificate.ts';
import type { Opened } from './open-services.ts';

type ContextDeps = Pick<Opened, 'settings' | 'services' | 'regionIds' | 'log' | 'keyring'>;

/** Reads the settings of registries, and collects the rest from the process. */
export async function createDriverContext(deps: ContextDeps): Promise<DriverContext> {
  const { settings, services, regionIds, log, keyring } = deps;
  // A missing key file affects registries only; their duty tries again.
  const registryHosting = await services.registries.hosting(regionIds).catch((error: unknown) => {
    log.error({ err: error }, 'registries cannot be served');
    return null;
  });
  const { dataDir, diskReserve, tls, agent } = settings;
  const acmeCertificateFor = (host: string) =>
    acmeFollowerFor(host, tls.acme, { db: services.db, keyring, dataDir, log });
  const { memberRules } = services;
  return { dataDir, hostName: agent.name, diskReserve, log, memberRules, registryHosting, acmeCertificateFor };
}
