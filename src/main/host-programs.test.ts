import { expect, test } from 'vitest';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { findPrograms } from './host-programs.ts';
import { checkoutPlaces, root } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';

const settings = (env: Record<string, string> = {}) => readSettings(env, checkoutPlaces(root), false);
const storage = { driver: 'ceph', conf: '/c', user: 'u', pool: 'p', filesystem: 'f' } as const;
const region: RegionConfiguration = { id: 1, display_name: '1', country: 'LU' };
const packagesOf = (regions: RegionConfiguration[], env?: Record<string, string>) =>
  findPrograms(regions, settings(env)).map((each) => each.package);

const local = ['nfs-ganesha-vfs', 'xfsprogs', 'rpcbind', 'netbase'];
const groups = ['nfs-ganesha-ceph', 'iputils-arping', 'python3-cephfs', 'python3-rados'];
const moving = ['keepalived', 'iproute2'];

test('the only host of a region needs the programs of its own disks', () => {
  const packages = packagesOf([region]);
  expect(packages).toEqual(expect.arrayContaining(local));
  for (const each of [...groups, ...moving]) expect(packages).not.toContain(each);
});

test('hosts of a region need the programs of NFS groups and of addresses that move', () => {
  const hosts = { nfs_addresses: ['10.77.2.1'] };
  const packages = packagesOf([{ ...region, storage, hosts }]);
  expect(packages).toEqual(expect.arrayContaining([...groups, ...moving, 'ceph-fuse']));
  for (const each of local) expect(packages).not.toContain(each);
  expect(packagesOf([{ ...region, storage, hosts }], { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' })).not.toContain(
    'nfs-ganesha-ceph',
  );
  expect(packagesOf([{ ...region, hosts: {} }])).toEqual(expect.arrayContaining(moving));
});
