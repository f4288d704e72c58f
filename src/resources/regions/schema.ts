/** Regions as clients see them and as the regions file has them (docs/interface.md, "Projects and regions"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Nullable, Paging, ShortText } from '../../http/shapes.ts';
import { VolumeTypeName } from '../volumes/schema.ts';

const Coordinate = Type.String({ pattern: '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$' });
const Coordinates = Type.Object({ latitude: Coordinate, longitude: Coordinate }, { additionalProperties: false });
const Zone = Type.Enum(['AMERICAS', 'APAC', 'EMEA', 'RUSSIA_AND_CIS']);
const FileShareType = Type.Enum(['standard', 'vast']);
const OrderBy = Type.Enum(['created_at.asc', 'created_at.desc', 'display_name.asc', 'display_name.desc']);

const RegionConfiguration = Type.Object(
  {
    id: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    display_name: Type.String({ minLength: 1, maxLength: 100 }),
    country: Type.String({ pattern: '^\\w{2}$' }),
    zone: Type.Optional(Zone),
    coordinates: Type.Optional(Coordinates),
    file_share_types: Type.Optional(Type.Array(FileShareType, { uniqueItems: true })),
    volume_types: Type.Optional(Type.Array(VolumeTypeName, { uniqueItems: true })),
    /** IPv4 network that load balancers have their addresses from; absent: the region has no load balancers. */
    vip_range: Type.Optional(Type.String()),
    /** Networks where members of pools may be; absent: everywhere but where platform/member-networks.ts says. */
    member_networks: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    /** Networks where they may not be, although `member_networks` has them. */
    member_networks_denied: Type.Optional(Type.Array(Type.String())),
    /** A price book, relative to the regions file. */
    price_book: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
);
export type RegionConfiguration = Static<typeof RegionConfiguration>;

export const RegionsFile = Type.Object(
  { regions: Type.Array(RegionConfiguration, { minItems: 1 }) },
  { additionalProperties: false },
);

export const RegionPath = Type.Object({ region_id: IntegerId });
const ShowVolumeTypes = { show_volume_types: Type.Optional(Type.Boolean({ default: false })) };
export const GetRegion = Type.Object(ShowVolumeTypes);
export const ListRegions = Type.Object({
  ...Paging(100),
  ...ShowVolumeTypes,
  display_name: Type.Optional(ShortText),
  order_by: Type.Optional(OrderBy),
  product: Type.Optional(Type.Enum(['containers', 'inference'])),
});
export type ListRegions = Static<typeof ListRegions>;

export const Region = Type.Object({
  id: Type.Integer(),
  access_level: Type.Enum(['core', 'edge']),
  available_volume_types: Nullable(Type.Array(Type.String())),
  coordinates: Nullable(Coordinates),
  country: Type.String(),
  created_at: Type.String({ format: 'date-time' }),
  created_on: Type.String({ format: 'date-time', deprecated: true }),
  ddos_endpoint_id: Nullable(Type.Integer()),
  display_name: Type.String(),
  endpoint_type: Type.Enum(['admin', 'internal', 'public']),
  external_network_id: Nullable(Type.String()),
  file_share_types: Nullable(Type.Array(FileShareType)),
  has_ai: Type.Boolean(),
  has_ai_gpu: Type.Boolean(),
  has_baremetal: Type.Boolean(),
  has_basic_vm: Type.Boolean(),
  has_dbaas: Type.Boolean(),
  has_ddos: Type.Boolean(),
  has_k8s: Type.Boolean(),
  has_kvm: Type.Boolean(),
  has_sfs: Type.Boolean(),
  keystone_id: Type.Integer(),
  keystone_name: Type.String(),
  metrics_database_id: Nullable(Type.Integer()),
  slug: Type.String(),
  state: Type.Enum(['ACTIVE', 'DELETED', 'DELETING', 'DELETION_FAILED', 'INACTIVE', 'MAINTENANCE', 'NEW']),
  task_id: Nullable(Type.String()),
  vlan_physical_network: Type.String(),
  zone: Nullable(Zone),
});
export type Region = Static<typeof Region>;
export const RegionCollection = Collection(Region);
export type RegionCollection = Static<typeof RegionCollection>;
