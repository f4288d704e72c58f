/** Creates and seeds file shares for benchmarks. */
import { type Db, transaction } from '../src/platform/db.ts';
import { regionalKinds } from '../src/quota/kinds.ts';
import type { CreateFileShare } from '../src/resources/file-shares/schema.ts';
import type { Cloudyard } from './cloudyard.ts';

type Requester = Pick<Cloudyard, 'request'>;

/** Path of the default project of the operator. */
export const scope = { clientId: 1, projectId: 1, regionId: 1, regionName: 'local' };
export const sharesPath = '/cloud/v1/file_shares/1/1';

export async function newShare(cloudyard: Requester): Promise<CreateFileShare> {
  const { network_id, subnet_id } = await defaultNetwork(cloudyard);
  return { name: 'bench', protocol: 'NFS', size: 1, network: { network_id, subnet_id } };
}

/** Requests that create shares, for `requestsPerSecond`. */
export async function shareLoad(cloudyard: Cloudyard) {
  const { url, headers } = cloudyard;
  return { method: 'POST', url: url + sharesPath, headers, body: await newShare(cloudyard) } as const;
}

async function defaultNetwork(cloudyard: Requester): Promise<{ network_id: string; subnet_id: string }> {
  const { results } = await cloudyard.request('GET', '/cloud/v1/networks/1/1');
  return { network_id: results[0].id, subnet_id: results[0].subnets[0] };
}

/** Raises quotas of the region, so that no create reaches a limit. */
export async function liftQuotas(cloudyard: Requester, kinds: readonly string[] = regionalKinds): Promise<void> {
  const limits = Object.fromEntries(kinds.map((kind) => [`${kind}_limit`, 1e12]));
  await cloudyard.request('PATCH', '/cloudyard/v1/clients/1/quotas', { region_id: 1, ...limits });
}

/** Inserts available shares and their counts, as if they had been created one by one, and analyzes the tables. */
export async function seedShares(db: Db, cloudyard: Cloudyard, projectId: number, count: number): Promise<void> {
  const { network_id, subnet_id } = await defaultNetwork(cloudyard);
  await transaction(db, async (tx) => {
    // Skips foreign key checks, which would take most of the time.
    await tx.$client.query('set local session_replication_role = replica');
    await tx.$client.query(insertShares, [count, projectId, network_id, subnet_id]);
    await tx.$client.query(countShares, [projectId, count]);
    await tx.$client.query(useQuota, [count]);
  });
  await db.$client.query('vacuum analyze file_shares');
  await db.$client.query('vacuum analyze row_counts');
}

const insertShares = `
  insert into file_shares (id, client_id, project_id, region_id, name, type_name, size, observed_size, network_id, subnet_id,
    root_squash, tags, status, connection_point, creator_task_id, generation, observed_generation, created_at)
  select gen_random_uuid(), 1, $2, 1, 'share-' || n, 'standard', 1, 1, $3, $4,
    false, '{}', 'available', '127.0.0.1:/' || n, gen_random_uuid(), 1, 1, now() - (($1 - n) || ' seconds')::interval
  from generate_series(1, $1::int) as n`;

const countShares = `
  insert into row_counts as c (resource, project_id, region_id, count) values ('file_share', $1, 1, $2)
  on conflict (resource, project_id, region_id) do update set count = c.count + excluded.count`;

const useQuota = `
  insert into quota_counters as c (client_id, region_id, kind, usage) values (1, 1, 'sfs_count', $1), (1, 1, 'sfs_size', $1)
  on conflict (client_id, region_id, kind) do update set usage = c.usage + excluded.usage`;
