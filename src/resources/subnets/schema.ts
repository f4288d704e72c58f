/** Requests and responses of subnets (docs/interface.md, "Networks and subnets"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, IpAddress, IpNetwork, Name, Nullable, Paging, Uuid } from '../../http/shapes.ts';
import { CreateTags, Tag, UpdateTags } from '../../tags/tags.ts';
import { TagFilterQuery } from '../../tags/filter.ts';

export const SubnetPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, subnet_id: Uuid });

const IpVersion = Type.Enum([4, 6]);

const HostRoute = Type.Object({ destination: IpNetwork, nexthop: IpAddress }, { additionalProperties: false });

/** What can be changed later, too. */
const settings = {
  dns_nameservers: Type.Optional(Nullable(Type.Array(IpAddress, { maxItems: 16, uniqueItems: true }))),
  enable_dhcp: Type.Optional(Type.Boolean()),
  gateway_ip: Type.Optional(Nullable(IpAddress)),
  host_routes: Type.Optional(Nullable(Type.Array(HostRoute, { maxItems: 64, uniqueItems: true }))),
};

export const CreateSubnet = Type.Object(
  {
    ...settings,
    name: Name,
    network_id: Uuid,
    cidr: IpNetwork,
    ip_version: Type.Optional(IpVersion),
    connect_to_network_router: Type.Optional(
      Type.Boolean({ description: 'accepted and ignored: no packets are routed' }),
    ),
    router_id_to_connect: Type.Optional(Nullable(Uuid)),
    tags: Type.Optional(CreateTags),
    /** The Terraform provider writes tags under this name. */
    metadata: Type.Optional(CreateTags),
  },
  { additionalProperties: false },
);
export type CreateSubnet = Static<typeof CreateSubnet>;

export const UpdateSubnet = Type.Object(
  {
    ...settings,
    name: Type.Optional(Nullable(Name)),
    tags: Type.Optional(UpdateTags),
  },
  { additionalProperties: false },
);
export type UpdateSubnet = Static<typeof UpdateSubnet>;

const orders = [
  'available_ips.asc',
  'available_ips.desc',
  'cidr.asc',
  'cidr.desc',
  'created_at.asc',
  'created_at.desc',
  'name.asc',
  'name.desc',
  'total_ips.asc',
  'total_ips.desc',
  'updated_at.asc',
  'updated_at.desc',
] as const;
export type SubnetOrder = (typeof orders)[number];

export const ListSubnets = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  network_id: Type.Optional(Uuid),
  order_by: Type.Optional(Type.Enum([...orders], { default: 'created_at.asc' })),
  owned_by: Type.Optional(Type.Enum(['any', 'project'])),
});
export type ListSubnets = Static<typeof ListSubnets>;

export const Subnet = Type.Object({
  id: Uuid,
  name: Type.String(),
  available_ips: Nullable(Type.Integer()),
  cidr: Type.String(),
  created_at: Type.String(),
  creator_task_id: Nullable(Uuid),
  dns_nameservers: Type.Array(Type.String()),
  enable_dhcp: Type.Boolean(),
  gateway_ip: Nullable(Type.String()),
  has_router: Type.Boolean({ deprecated: true }),
  host_routes: Type.Array(Type.Object({ destination: Type.String(), nexthop: Type.String() })),
  ip_version: IpVersion,
  network_id: Uuid,
  project_id: Type.Integer(),
  region: Type.String(),
  region_id: Type.Integer(),
  tags: Type.Array(Tag),
  /** The Terraform provider reads tags under this name. */
  metadata: Type.Array(Tag, { deprecated: true }),
  task_id: Nullable(Uuid),
  total_ips: Nullable(Type.Integer()),
  updated_at: Type.String(),
});
export type Subnet = Static<typeof Subnet>;
export const SubnetCollection = Collection(Subnet);
export type SubnetCollection = Static<typeof SubnetCollection>;
