/** Responses about hosts. */
import { type Static, Type } from 'typebox';
import { Collection, Component, DateTime, Described, IntegerId, OrNull, Paging } from '../../http/shapes.ts';

export const ListHosts = Type.Object({
  ...Paging(100),
  region_id: Type.Optional(Described(IntegerId, 'Only hosts of this region')),
});
export type ListHosts = Static<typeof ListHosts>;

const Driver = Component('HostDriver', {
  kind: Type.String({ description: 'What it serves: `load balancers`, `file shares`' }),
  driver: Type.String({ description: 'The name of the driver: `haproxy`, `simulated`' }),
  real: Type.Boolean({ description: 'false: it is simulated' }),
  healthy: Type.Boolean({ description: 'Whether it works at the moment' }),
  detail: Type.String({ description: 'What it does on the host, or its problem' }),
});

export const Host = Component('Host', {
  region_id: Type.Integer({ description: 'ID of the region' }),
  name: Type.String({ description: 'Name of the host, unique in the region' }),
  address: Type.String({ description: 'Its address among the hosts' }),
  interface: OrNull.text(
    'Network interface that gets the addresses that move; null: the interface with the address of the host',
  ),
  state: Type.Enum(['active', 'draining', 'drained'], {
    description: '`draining`: its groups move to other hosts; `drained`: it holds none',
  }),
  lease_valid: Type.Boolean({ description: 'Whether its lease has not ended' }),
  lease_until: Described(DateTime, 'When its lease ends unless it is renewed'),
  converged: Type.Boolean({
    description:
      'Whether it has applied everything that is published, so that it may serve; false without a valid lease',
  }),
  pending_changes: Type.Integer({ description: 'Number of changes that it has not applied' }),
  held_groups: Type.Array(Type.String(), {
    description:
      'Address groups and NFS groups that it holds: `addresses-3`, `api`, `registry`, `nfs 10.77.2.1`; none without a valid lease',
  }),
  drivers: Type.Array(Driver, { description: 'What it serves, as of its last report' }),
  version: Type.String({ description: 'Version of its agent' }),
  joined_at: Described(DateTime, 'When it joined the region'),
  started_at: Described(DateTime, 'When its agent took the lease'),
});
export type Host = Static<typeof Host>;
export const HostCollection = Collection(Host);
