/** The place of shares in the NFS groups of a region of several hosts. */
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { sql } from 'drizzle-orm';

const addresses = ['10.77.2.1', '10.77.2.2'];
const cloud = useCloudyard({
  configuration: (shipped) => ({
    ...shipped,
    regions: shipped.regions.map((region) => ({
      ...region,
      hosts: { nfs_addresses: addresses },
      storage: { driver: 'ceph', conf: '/etc/ceph/ceph.conf', user: 'x', pool: 'volumes', filesystem: 'shares' },
    })),
  }),
});
const shares = '/cloud/v1/file_shares/1/1';

async function create(): Promise<{ status: number; body: any }> {
  const networks = await cloud.get('/cloud/v1/networks/1/1');
  const network = { network_id: networks.body.results[0].id };
  return cloud.post(shares, { name: 'a share', protocol: 'NFS', size: 1, network });
}

async function places(): Promise<{ id: string; address: string; number: number }[]> {
  const { rows } = await cloud.db.execute(
    sql`select id, nfs_group as address, export_id as number from file_shares order by export_id, nfs_group`,
  );
  return rows as never;
}

describe('a region of several hosts', () => {
  it('places shares that are created at once evenly, with numbers of their own', async () => {
    const created = await Promise.all(Array.from({ length: 8 }, create));
    await Promise.all(created.map((answer) => cloud.ended(answer as never)));
    const found = await places();
    expect(found.map(({ address, number }) => `${address} ${number}`)).toEqual(
      [1, 2, 3, 4].flatMap((number) => addresses.map((address) => `${address} ${number}`)),
    );
  });

  it('does not use the number of a deleted share again', async () => {
    const [first] = await places();
    await cloud.ended(await cloud.delete(`${shares}/${first!.id}`));
    await cloud.ended((await create()) as never);
    const found = await places();
    expect(found.at(-1)).toMatchObject({ address: first!.address, number: 5 });
  });

  it('refuses a share for which no group has room, and names the region', async () => {
    const created = await Promise.all(Array.from({ length: 52 }, create));
    await Promise.all(created.map((answer) => cloud.ended(answer as never)));
    const refused = await create();
    expect(refused.status).toBe(409);
    expect(refused.body).toMatchObject({
      exception_class: 'QuotaExceeded',
      message: expect.stringContaining(
        'the region local holds its 60 file shares (30 for each of its 2 NFS addresses)',
      ),
    });
  });
});
