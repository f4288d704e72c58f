/** Clients of one Cloudyard that compete for it. */
import type { AddressInfo } from 'node:net';
import { inject, onTestFinished } from 'vitest';
import type { Actor } from '../../src/authz/actor.ts';
import { transaction } from '../../src/platform/db.ts';
import { type Cloudyard, type CloudyardOptions, openCloudyard } from '../harness.ts';

export interface Tenant {
  clientId: number;
  projectId: number;
  token: string;
  shares: string;
  body: object;
}

export async function open(options: CloudyardOptions): Promise<Cloudyard & { url: string }> {
  const { cloudyard, stop } = await openCloudyard(inject('postgres'), options);
  onTestFinished(stop);
  await cloudyard.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = cloudyard.app.server.address() as AddressInfo;
  return { ...cloudyard, url: `http://127.0.0.1:${port}` };
}

export async function aTenant(cloud: Cloudyard): Promise<Tenant> {
  const { clientId, projectId, token } = await cloud.newClient();
  const limits = { sfs_count: 1e6, sfs_size: 1e6 };
  await transaction(cloud.db, (tx) => cloud.services.quota.setLimits(tx, { clientId, regionId: 1 }, limits));
  const { results } = (await cloud.get(`/cloud/v1/networks/${projectId}/1`, { token })).body;
  const body = { name: 'share', protocol: 'NFS', size: 1, network: { network_id: results[0].id } };
  return { clientId, projectId, token, shares: `/cloud/v1/file_shares/${projectId}/1`, body };
}

export function actorOf({ clientId }: Tenant, weight = 1): Actor {
  return { tokenId: 1, clientId, weight, role: 'member', projectIds: null, operator: false };
}

/** Creates shares without HTTP, ten at a time. */
export async function enqueue(cloud: Cloudyard, tenant: Tenant, count: number, weight = 1): Promise<void> {
  const { clientId, projectId } = tenant;
  const scope = { clientId, projectId, regionId: 1, regionName: 'local' };
  const actor = actorOf(tenant, weight);
  for (let left = count; left > 0; left -= 10) {
    await Promise.all(
      Array.from({ length: Math.min(10, left) }, (_, i) =>
        cloud.services.fileShares.create({ actor, requestId: `${clientId}-${left}-${i}` }, scope, tenant.body as never),
      ),
    );
  }
}

export async function clientsOfShares(cloud: Cloudyard): Promise<Map<string, number>> {
  const { rows } = await cloud.db.$client.query<{ id: string; client_id: number }>(
    'select id, client_id from file_shares',
  );
  return new Map(rows.map((row) => [row.id, row.client_id]));
}
