/** Networks that access rules of file shares accept. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard();
const shares = '/cloud/v1/file_shares/1/1';

async function requests() {
  const [network] = (await cloud.get('/cloud/v1/networks/1/1')).body.results;
  const valid = { name: 'a share', protocol: 'NFS', size: 1, network: { network_id: network.id } };
  const create = (ip_address: string) => cloud.post(shares, { ...valid, access: [{ access_mode: 'rw', ip_address }] });
  const task = await cloud.ended(await create('10.0.0.0/24'));
  const rules = `${shares}/${task.body.created_resources.file_shares[0]}/access_rule`;
  return { create, add: (ip_address: string) => cloud.post(rules, { access_mode: 'ro', ip_address }) };
}

it('an IPv6 network from /100 to /119 is refused, with the prefixes that are accepted', async () => {
  const { create, add } = await requests();
  const message = 'IPv6 prefixes /100 to /119 are not supported; use /99 or shorter, or /120 or longer';
  for (const network of ['2001:db8::/100', '2001:db8::/112', '2001:db8::/119']) {
    const refused = (path: string) => ({ status: 400, body: { errors: [{ path, message }] } });
    expect(await create(network)).toMatchObject(refused('access.0.ip_address'));
    expect(await add(network)).toMatchObject(refused('ip_address'));
  }
  for (const network of ['2001:db8::/99', '2001:db8::/120']) {
    expect(await add(network)).toMatchObject({ status: 200, body: { access_to: network } });
    // A change locks the share.
    await expect
      .poll(async () => (await cloud.get(shares)).body.results.every((share: any) => !share.task_id))
      .toBe(true);
  }
});
