/** Creates clients for benchmarks, each with a token, a project and a network, and without limits. */
import { randomUUID } from 'node:crypto';
import { transaction } from '../src/platform/db.ts';
import type { Services } from '../src/main/services.ts';
import type { Cloudyard } from './cloudyard.ts';
import type { Turn } from './load.ts';

export interface Tenant {
  clientId: number;
  token: string;
  /** The request that creates a share of the client. */
  create: Turn;
}

export async function createTenants(services: Services, cloudyard: Cloudyard, count: number): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (let i = 0; i < count; i++) tenants.push(await createTenant(services, cloudyard));
  return tenants;
}

async function createTenant(services: Services, cloudyard: Cloudyard): Promise<Tenant> {
  const { clientId, projectId } = await services.clients.create(`bench ${randomUUID()}`);
  const given = { clientId, name: 'bench', role: 'admin', projectIds: null, expiresAt: null } as const;
  const { text: token } = await services.tokens.create(given);
  await transaction(services.db, (tx) =>
    services.quota.setLimits(tx, { clientId, regionId: 1 }, { sfs_count: 1e9, sfs_size: 1e12 }),
  );
  const headers = { authorization: `apikey ${token}` };
  const response = await fetch(`${cloudyard.url}/cloud/v1/networks/${projectId}/1`, { headers });
  const { results } = (await response.json()) as { results: { id: string }[] };
  const body = { name: 'bench', protocol: 'NFS', size: 1, network: { network_id: results[0]!.id } };
  return { clientId, token, create: { path: `/cloud/v1/file_shares/${projectId}/1`, headers, body } };
}
