import { expect, test } from 'vitest';
import { skipReason } from '../../test/requires.ts';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { detectHostedDrivers } from './hosted-drivers.ts';
import { checkoutPlaces, root } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';

const settings = (env: Record<string, string> = {}) => readSettings(env, checkoutPlaces(root), false);
const storage = { driver: 'ceph', conf: '/c', user: 'u', pool: 'p', filesystem: 'shares' } as const;
const region: RegionConfiguration = { id: 1, display_name: '1', country: 'LU' };
const hosted = (hosts: RegionConfiguration['hosts'], env?: Record<string, string>, own: object = { storage }) =>
  detectHostedDrivers([region, { ...region, id: 2, ...own, hosts }], settings(env));

test('a region of one host has the drivers of this host', () => {
  expect(detectHostedDrivers([region], settings())).toEqual({});
});

test('file shares of several hosts are exports of the CephFS, or name the packages that are missing', () => {
  const { 'file shares': shares, addresses } = hosted({ nfs_addresses: ['10.77.2.1', 'fd00:78::1'] });
  const missing = skipReason('ceph', 'nfs-ganesha', 'nfs-ganesha-ceph', 'iputils-arping');
  const detail = missing ? expect.stringMatching(/^missing: /) : 'NFSv4 exports of the CephFS shares, at 2 addresses';
  expect(shares).toMatchObject({ driver: 'ganesha', real: true, healthy: missing === null, detail });
  if (missing) expect(shares!.remedy).toMatch(/^sudo apt-get install .*(ganesha|arping|ceph)/);
  expect(addresses).toMatchObject({ driver: 'keepalived', real: true });
});

test('without addresses or storage they are simulated, and the reason is named', () => {
  const noGroups = 'region 2 has no storage that its hosts share, or no nfs_addresses';
  expect(hosted({})['file shares']).toMatchObject({ driver: 'simulated', real: false, detail: noGroups });
  const local = hosted({ nfs_addresses: ['10.77.2.1'] }, {}, {});
  const noStorage = { real: false, detail: 'region 2 has no storage that its hosts share' };
  expect(local).toMatchObject({ 'file shares': { detail: noGroups }, volumes: noStorage, registries: noStorage });
  expect(hosted({}, { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' })).not.toHaveProperty('file shares');
});
