/** Shares of the type vast, in a region that offers them. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({
  configuration: (shipped) => ({
    ...shipped,
    regions: shipped.regions.map((region) => ({ ...region, file_share_types: ['standard' as const, 'vast' as const] })),
  }),
});
const shares = '/cloud/v1/file_shares/1/1';
const vast = { name: 'a share', protocol: 'NFS', size: 1, type_name: 'vast' };

it('a vast share gets the default network, and can have access rules', async () => {
  const made = await cloud.ended(await cloud.post(shares, vast));
  const path = `${shares}/${made.body.created_resources.file_shares[0]}`;
  const { results } = (await cloud.get('/cloud/v1/networks/1/1')).body;
  expect((await cloud.get(path)).body).toMatchObject({
    network_id: results[0].id,
    share_network_name: null,
    share_settings: { type_name: 'vast', root_squash: true },
  });
  const rule = await cloud.post(`${path}/access_rule`, { access_mode: 'ro', ip_address: '10.0.0.0/24' });
  expect(rule).toMatchObject({ status: 200, body: { access_to: '10.0.0.0/24', access_level: 'ro' } });
});

it('a vast share has no trash: trash_access is false or absent', async () => {
  const share = (settings: object, changes = {}) => ({ ...vast, share_settings: settings, ...changes });
  const made = await cloud.ended(await cloud.post(shares, share({ trash_access: false })));
  const id = made.body.created_resources.file_shares[0];
  expect((await cloud.get(`${shares}/${id}`)).body.share_settings.trash_access).toBe(false);
  const same = await cloud.patch(`/cloud/v3/file_shares/1/1/${id}`, { share_settings: { trash_access: false } });
  expect(same).toMatchObject({ status: 200, body: { tasks: [] } });
  const path = 'share_settings.trash_access';
  const refused = await cloud.post(shares, share({ trash_access: true }));
  expect(refused).toMatchObject({ status: 400, body: { errors: [{ path, message: 'must be false' }] } });
  const [network] = (await cloud.get('/cloud/v1/networks/1/1')).body.results;
  const standard = { type_name: 'standard', network: { network_id: network.id } };
  const misplaced = await cloud.post(shares, share({ trash_access: false }, standard));
  expect(misplaced).toMatchObject({ status: 400, body: { errors: [{ path }] } });
});

it('a vast share of a project whose network has no subnet is refused with what to do', async () => {
  const project = await cloud.post('/cloud/v1/projects', { name: 'one network' });
  const of = (resource: string) => `/cloud/v1/${resource}/${project.body.id}/1`;
  const made = await cloud.ended(await cloud.post(of('networks'), { name: 'a network' }));
  const [network] = made.body.created_resources.networks;
  const message = `network ${network}, which is used by default, has no subnet; create one`;
  expect((await cloud.post(of('file_shares'), vast)).body.errors).toEqual([{ path: '', message }]);
});
