/** Requests and responses of subnets (docs/interface.md, "Networks and subnets"). */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  exampleUuid,
  Input,
  IpAddress,
  IpNetwork,
  Name,
  Nullable,
  OrderBy,
  OrNull,
  Paging,
  PlaceFields,
  TaskFields,
  Uuid,
} from '../../http/shapes.ts';
import { newTagFields, Tag, UpdateTags } from '../../tags/tags.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { ListNetworks, Network } from '../networks/schema.ts';

const IpVersion = Type.Enum([4, 6], { description: 'Version of the Internet Protocol' });

const HostRoute = Input('HostRoute', {
  destination: Described(IpNetwork, 'Destination network'),
  nexthop: Described(IpAddress, 'Address of the router'),
});

/** Fields of requests that create or update a subnet. */
const settings = {
  dns_nameservers: Type.Optional(
    Described(
      Nullable(Type.Array(IpAddress, { maxItems: 16, uniqueItems: true })),
      'Addresses of DNS servers; at most 16',
    ),
  ),
  enable_dhcp: Type.Optional(Type.Boolean({ description: 'Whether DHCP is on; default: true' })),
  gateway_ip: Type.Optional(Described(Nullable(IpAddress), 'Address of the gateway; null: no gateway')),
  host_routes: Type.Optional(
    Described(Nullable(Type.Array(HostRoute, { maxItems: 64, uniqueItems: true })), 'Static routes; at most 64'),
  ),
};

export const CreateSubnet = Body(
  'CreateSubnet',
  [{ name: 'my-subnet', network_id: exampleUuid, cidr: '192.168.10.0/24' }],
  {
    ...settings,
    name: Name,
    network_id: Described(Uuid, 'ID of the network'),
    cidr: Type.String({ format: 'ip-cidr', description: 'Address range in CIDR notation' }),
    ip_version: Type.Optional(IpVersion),
    connect_to_network_router: Type.Optional(
      Type.Boolean({ description: 'Accepted and ignored: packets are not routed' }),
    ),
    router_id_to_connect: Type.Optional(Described(Nullable(Uuid), 'Accepted and ignored: packets are not routed')),
    ...newTagFields,
  },
);
export type CreateSubnet = Static<typeof CreateSubnet>;

export const UpdateSubnet = Body('UpdateSubnet', [{ name: 'renamed-subnet' }], {
  ...settings,
  name: Type.Optional(Nullable(Name)),
  tags: Type.Optional(UpdateTags),
});
export type UpdateSubnet = Static<typeof UpdateSubnet>;

export const ListSubnets = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  network_id: Type.Optional(Described(Uuid, 'Only subnets of this network')),
  order_by: OrderBy(['available_ips', 'cidr', 'created_at', 'name', 'total_ips', 'updated_at'], 'cidr.asc'),
  owned_by: Type.Optional(
    Type.Enum(['any', 'project'], { description: '`project`: only subnets of the project; `any`: shared ones too' }),
  ),
});
export type ListSubnets = Static<typeof ListSubnets>;

export const Subnet = Component('Subnet', {
  id: Described(Uuid, 'ID of the subnet'),
  name: Type.String({ description: 'Name of the subnet' }),
  available_ips: OrNull.integer('Number of free addresses'),
  cidr: Type.String({ description: 'Address range in CIDR notation' }),
  created_at: Described(DateTime, 'When the subnet was created'),
  ...TaskFields,
  creator_task_id: Described(Nullable(Uuid), 'ID of the task that created the subnet; null for a default subnet'),
  dns_nameservers: Type.Array(Type.String(), { description: 'Addresses of DNS servers' }),
  enable_dhcp: Type.Boolean({ description: 'Whether DHCP is on' }),
  gateway_ip: OrNull.text('Address of the gateway; null: no gateway'),
  has_router: Type.Boolean({ deprecated: true, description: 'Always false' }),
  host_routes: Type.Array(
    Type.Object({
      destination: Type.String({ description: 'Destination network' }),
      nexthop: Type.String({ description: 'Address of the router' }),
    }),
    { description: 'Static routes' },
  ),
  ip_version: IpVersion,
  network_id: Described(Uuid, 'ID of the network'),
  ...PlaceFields,
  tags: Type.Array(Tag, { description: 'Tags, by key' }),
  metadata: Type.Array(Tag, { deprecated: true, description: 'Use `tags`; the Terraform provider reads this name' }),
  total_ips: OrNull.integer('Number of addresses'),
  updated_at: Described(DateTime, 'When the subnet last changed'),
});
export type Subnet = Static<typeof Subnet>;
export const SubnetCollection = Collection(Subnet);

const { owned_by: _owner, ...networkFilters } = ListNetworks.properties;
export const ListAvailableNetworks = Type.Object({
  ...networkFilters,
  network_id: Type.Optional(Described(Uuid, 'Only the network with this ID')),
  shared: Type.Optional(
    Type.Boolean({ description: 'No network is shared with other projects: `true` returns an empty list' }),
  ),
});
export type ListAvailableNetworks = Static<typeof ListAvailableNetworks>;

const AvailableNetwork = Component('AvailableNetwork', {
  ...Network.properties,
  subnets: Type.Array(Subnet, { description: 'Subnets, by address range' }),
});
export type AvailableNetwork = Static<typeof AvailableNetwork>;
export const AvailableNetworkCollection = Collection(AvailableNetwork);
