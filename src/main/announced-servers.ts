/**
 * Servers of Cloudyard that other processes have announced in the database. Load balancers must not carry tenants there, so
 * a worker or an agent adds them to its control plane (control-plane.ts), and again periodically.
 */
import { PEER_PORT } from '../drivers/load-balancer.ts';
import { hostAddresses } from '../hosts/store.ts';
import type { Db } from '../platform/db.ts';
import { inBrackets } from '../platform/network-address.ts';
import { announcedApi } from '../resources/registries/token-server/authority.ts';
import type { ControlPlane } from './control-plane.ts';
import type { Opened } from './open-services.ts';

interface StartDeps extends Pick<Opened, 'controlPlane' | 'services' | 'log'> {
  announced: Promise<unknown>;
}

/** At the start: adds the servers that are announced when the API server of this process has announced itself. */
export async function addServersAtStart({ announced, controlPlane, services, log }: StartDeps): Promise<void> {
  await announced;
  await addAnnouncedServers(controlPlane, services.db).catch((error: unknown) =>
    log.error({ err: error }, 'the URL of the API is unknown'),
  );
}

/** Adds announced servers and resolves all names again. */
export async function refreshControlPlane(controlPlane: Pick<ControlPlane, 'add' | 'refresh'>, db: Db): Promise<void> {
  await addAnnouncedServers(controlPlane, db);
  await controlPlane.refresh();
}

/** Adds the API server, if one has announced itself, and the port of each host at which load balancers share sessions. */
async function addAnnouncedServers(controlPlane: Pick<ControlPlane, 'add'>, db: Db): Promise<void> {
  const url = await announcedApi(db);
  if (url !== null) await controlPlane.add('API', url);
  for (const { name, address } of await hostAddresses(db)) {
    await controlPlane.add(`sessions of ${name}`, `http://${inBrackets(address)}:${PEER_PORT}`);
  }
}
