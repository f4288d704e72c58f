/**
 * Servers of Cloudyard that other processes have announced in the database. Load balancers must not carry tenants there, so
 * a worker or an agent adds them to its control plane (control-plane.ts), and again periodically.
 */
import { isIP } from 'node:net';
import { PEER_PORT } from '../drivers/load-balancer.ts';
import { hostAddresses } from '../hosts/store.ts';
import type { Db } from '../platform/db.ts';
import { announcedApi } from '../resources/registries/token-server/authority.ts';
import type { ControlPlane } from './control-plane.ts';

/** Adds the API server, if one has announced itself, and the port of each host at which load balancers share sessions. */
export async function addAnnouncedServers(controlPlane: Pick<ControlPlane, 'add'>, db: Db): Promise<void> {
  const url = await announcedApi(db);
  if (url !== null) await controlPlane.add('API', url);
  for (const { name, address } of await hostAddresses(db)) {
    const host = isIP(address) === 6 ? `[${address}]` : address;
    await controlPlane.add(`sessions of ${name}`, `http://${host}:${PEER_PORT}`);
  }
}
