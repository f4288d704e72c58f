import { expect, it, vi } from 'vitest';
import type { DriverContext } from '../drivers/kind.ts';
import type { HostedRegion } from '../resources/regions/host-configuration.ts';
import { createHostParts } from './host-parts.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';

// Real ones would check the services of this host until the process ends.
const balancerParts = vi.hoisted(() =>
  vi.fn<(options: { checkApi: unknown; checkRegistry: unknown }) => { title: string }[]>(() => [
    { title: 'load balancers' },
    { title: 'addresses' },
  ]),
);
vi.mock('../drivers/keepalived/balancer-parts.ts', () => ({ balancerParts }));

const storage = {
  driver: 'ceph' as const,
  conf: '/ceph.conf',
  user: 'cloudyard',
  pool: 'volumes',
  filesystem: 'shares',
};
const addresses = { nfsAddresses: ['10.77.2.1'], apiAddress: '10.77.0.10', registryAddress: '10.77.0.9' };

const settings = readSettings({}, checkoutPlaces('/srv'), false);
const regionOf = (own: HostedRegion['storage'], moving: object): HostedRegion => ({
  ...{ regionId: 1, vipRange: '10.77.1.0/24', vipRangeV6: null, storage: own },
  settings: { ...addresses, ...moving, addressGroups: 12, virtualRouterId: 100, leaseSeconds: 15 },
});

function partsOf(own: HostedRegion['storage'], moving: { apiAddress?: null; registryAddress?: null } = {}): string[] {
  const region = regionOf(own, moving);
  const context = {
    dataDir: '/srv/data',
    log: { info() {} },
    acmeCertificateFor: () => null,
  } as unknown as DriverContext;
  return createHostParts({ settings, region, context }).map(({ title }) => title);
}

it('a host without shared storage serves load balancers only', () => {
  expect(partsOf(null)).toEqual(['load balancers', 'addresses']);
});

it('a host with shared storage serves file shares and registries too', () => {
  expect(partsOf(storage)).toEqual(['load balancers', 'addresses', 'file shares', 'registries']);
});

it.each([
  [{}, [true, true]],
  [{ apiAddress: null }, [false, true]],
  [{ registryAddress: null }, [true, false]],
])('a host checks the API and registries if their addresses move (%j: %j)', (moving, isChecked) => {
  partsOf(storage, moving);
  const { checkApi, checkRegistry } = balancerParts.mock.lastCall![0];
  expect([checkApi !== null, checkRegistry !== null]).toEqual(isChecked);
});
