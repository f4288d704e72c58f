import { expect, test } from 'vitest';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { checkoutPlaces, root } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';
import { storageOf, withStorage } from './storage.ts';

const storage = { driver: 'ceph', conf: '/c', user: 'u', pool: 'p', filesystem: 'f' } as const;
const region = (id: number, more: Partial<RegionConfiguration> = {}): RegionConfiguration => ({
  ...{ id, display_name: String(id), country: 'LU' },
  ...more,
});
const settings = (env: Record<string, string> = {}) => readSettings(env, checkoutPlaces(root), false);

test('the storage of a worker is that of its regions, which must be the same', () => {
  const regions = [region(1), region(2, { storage }), region(3, { storage: { ...storage } })];
  expect(storageOf(regions, [1])).toBeNull();
  expect(storageOf(regions, [])).toBeNull();
  expect(storageOf(regions, [2, 3])).toEqual(storage);
  expect(() => storageOf(regions, [1, 2])).toThrow('regions 1 and 2 have different storage');
  expect(() => storageOf([...regions, region(4, { storage: { ...storage, pool: 'other' } })], [3, 4])).toThrow(
    '3 and 4',
  );
});

test('a storage selects the drivers of volumes and registries, unless they are simulated', () => {
  expect(withStorage(settings(), null).drivers.volume).toEqual({ driver: 'auto', storage: null });
  for (const driver of ['auto', 'disk']) {
    const { volume, registry } = withStorage(settings({ CLOUDYARD_VOLUME_DRIVER: driver }), storage).drivers;
    expect(volume).toEqual({ driver: 'ceph', storage });
    expect(registry).toMatchObject({ driver: 'auto', storage });
  }
  const simulated = withStorage(settings({ CLOUDYARD_VOLUME_DRIVER: 'simulated' }), storage).drivers;
  expect(simulated.volume.driver).toBe('simulated');
  expect(simulated.loadBalancer).toEqual(settings().drivers.loadBalancer);
});
