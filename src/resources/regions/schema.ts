/** Responses about regions, and the file that declares the regions (docs/interface.md, "Projects and regions"). */
import { type Static, Type } from 'typebox';
import {
  Collection,
  Component,
  Described,
  Input,
  Nullable,
  OrderBy,
  OrNull,
  Paging,
  ShortText,
} from '../../http/shapes.ts';
import { FileShareTypeName } from '../file-shares/schema.ts';
import { VolumeTypeName } from '../volumes/schema.ts';

/** `rule`: for errors in the regions file (platform/yaml-file.ts). */
const shortName = {
  pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$',
  rule: '1 to 63 letters, digits, `.`, `_` and `-`, and start with a letter or digit',
};
const decimal = { pattern: '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$' };
const coordinatesOf = (number: { pattern: string; rule?: string }) =>
  Input(
    'Coordinates',
    {
      latitude: Type.String({ ...number, description: 'Degrees north, as a decimal number' }),
      longitude: Type.String({ ...number, description: 'Degrees east, as a decimal number' }),
    },
    'Where the region is',
  );
const Coordinates = coordinatesOf(decimal);
const Zone = Type.Enum(['AMERICAS', 'APAC', 'EMEA', 'RUSSIA_AND_CIS'], { description: 'Part of the world' });
const FileShareType = Described(FileShareTypeName, 'Type of file shares');

const LoadBalancerFlavor = Type.Object(
  {
    name: Type.String(shortName),
    vcpus: Type.Integer({ minimum: 1, maximum: 1024 }),
    /** MiB. */
    ram: Type.Integer({ minimum: 1, maximum: 16_777_216 }),
  },
  { additionalProperties: false },
);
export type LoadBalancerFlavor = Static<typeof LoadBalancerFlavor>;

/** Where the data of a region with several hosts is. */
const RegionStorage = Type.Object(
  {
    driver: Type.Enum(['ceph']),
    /** The configuration file of Ceph; its keyring is found as by the programs of Ceph. */
    conf: Type.String({ pattern: '^/', rule: 'an absolute path' }),
    /** Without `client.`. */
    user: Type.String(shortName),
    /** The pool of volumes. */
    pool: Type.String(shortName),
    /** The CephFS of file shares and registries. */
    filesystem: Type.String(shortName),
  },
  { additionalProperties: false },
);

/** A region of several hosts (docs/decisions/0052-several-hosts.md). */
const RegionHosts = Type.Object(
  {
    /** One NFS group each. */
    nfs_addresses: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 100, uniqueItems: true })),
    /** The address of the API servers. */
    api_address: Type.Optional(Type.String()),
    /** The address of registries. */
    registry_address: Type.Optional(Type.String()),
    /** How many groups the addresses of load balancers are in. Default: 12. */
    address_groups: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
    /** The first virtual router id of VRRP; the groups use the following ones. Default: 100. */
    virtual_router_id: Type.Optional(Type.Integer({ minimum: 1, maximum: 255 })),
    /**
     * After how many seconds without a renewal a host stops serving, and others stop waiting for it. It should exceed the
     * failover of PostgreSQL. Default: 15.
     */
    lease_seconds: Type.Optional(Type.Integer({ minimum: 2, maximum: 3600 })),
  },
  { additionalProperties: false },
);

const RegionConfiguration = Type.Object(
  {
    id: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    display_name: Type.String({ minLength: 1, maxLength: 100 }),
    country: Type.String({ pattern: '^\\w{2}$', rule: 'a country code of two letters, ISO 3166-1' }),
    zone: Type.Optional(Zone),
    coordinates: Type.Optional(coordinatesOf({ ...decimal, rule: 'a decimal number such as 52.5' })),
    file_share_types: Type.Optional(Type.Array(FileShareType, { uniqueItems: true })),
    volume_types: Type.Optional(Type.Array(VolumeTypeName, { uniqueItems: true })),
    /** IPv4 network of the addresses of load balancers; without it the region has no load balancers. */
    vip_range: Type.Optional(Type.String()),
    /** IPv6 network of the addresses of load balancers, in addition to `vip_range`. */
    vip_range_v6: Type.Optional(Type.String()),
    /** Absent: the data directory of the worker's host. */
    storage: Type.Optional(RegionStorage),
    /** Absent: the region has one host, that of its worker. */
    hosts: Type.Optional(RegionHosts),
    /** The first one is the default. They differ in price only. */
    load_balancer_flavors: Type.Optional(Type.Array(LoadBalancerFlavor, { minItems: 1, maxItems: 100 })),
    /** Networks that members of pools may be in. Default: all but those of platform/member-networks.ts. */
    member_networks: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    /** Exceptions from `member_networks`. */
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

const ShowVolumeTypes = {
  show_volume_types: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to return `available_volume_types`' }),
  ),
};
export const GetRegion = Type.Object(ShowVolumeTypes);
export const ListRegions = Type.Object({
  ...Paging(100),
  ...ShowVolumeTypes,
  display_name: Type.Optional(Described(ShortText, 'Only the region with this name, in upper or lower case')),
  order_by: OrderBy(['created_at', 'display_name'], 'created_at.desc'),
  product: Type.Optional(
    Type.Enum(['containers', 'inference'], { description: 'Only regions with this product; none has one' }),
  ),
});
export type ListRegions = Static<typeof ListRegions>;

const Missing = (product: string) => Type.Boolean({ description: `Whether the region has ${product}; always false` });
const Unused = 'Always null';

export const Region = Component('Region', {
  id: Type.Integer({ description: 'ID of the region' }),
  access_level: Type.Enum(['core', 'edge'], { description: 'Always `core`' }),
  available_volume_types: Described(
    Nullable(Type.Array(Type.String())),
    'Types of volumes; null unless `show_volume_types` is true',
  ),
  coordinates: Nullable(Coordinates),
  country: Type.String({ description: 'Country code, ISO 3166-1 alpha-2' }),
  created_at: Type.String({ format: 'date-time', description: 'When the region was first declared' }),
  created_on: Type.String({ format: 'date-time', deprecated: true, description: 'Use `created_at`' }),
  ddos_endpoint_id: OrNull.integer(Unused),
  display_name: Type.String({ description: 'Name of the region' }),
  endpoint_type: Type.Enum(['admin', 'internal', 'public'], { description: 'Always `public`' }),
  external_network_id: OrNull.text(Unused),
  file_share_types: Described(Nullable(Type.Array(FileShareType)), 'Types of file shares that the region offers'),
  has_ai: Missing('AI clusters'),
  has_ai_gpu: Missing('GPU clusters'),
  has_baremetal: Missing('bare metal servers'),
  has_basic_vm: Missing('basic virtual machines'),
  has_dbaas: Missing('managed databases'),
  has_ddos: Missing('DDoS protection'),
  has_k8s: Missing('managed Kubernetes'),
  has_kvm: Missing('virtual machines'),
  has_sfs: Type.Boolean({ description: 'Whether the region has file shares' }),
  keystone_id: Type.Integer({ description: 'Internal ID' }),
  keystone_name: Type.String({ description: 'Internal name' }),
  metrics_database_id: OrNull.integer(Unused),
  slug: Type.String({ description: 'Short name for URLs' }),
  state: Type.Enum(['ACTIVE', 'DELETED', 'DELETING', 'DELETION_FAILED', 'INACTIVE', 'MAINTENANCE', 'NEW'], {
    description: 'Always `ACTIVE`',
  }),
  task_id: OrNull.text(Unused),
  vlan_physical_network: Type.String({ description: 'Internal name of the physical network' }),
  zone: Nullable(Zone),
});
export type Region = Static<typeof Region>;
export const RegionCollection = Collection(Region);
