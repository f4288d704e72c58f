/** Requests and responses of load balancers (docs/interface.md, "Load balancers"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Name, Nullable, Paging, ShortText, Uuid } from '../../http/shapes.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { CreateTags, maxTagChanges, maxTagLength, Tag, UpdateTags } from '../../tags/tags.ts';
import { NestedListener } from './listeners/schema.ts';
import { OperatingStatus, ProvisioningStatus, Stats } from './pools/schema.ts';

export const LoadBalancerPath = Type.Object({
  project_id: IntegerId,
  region_id: IntegerId,
  load_balancer_id: Uuid,
});

export const VipFamily = Type.Enum(['dual', 'ipv4', 'ipv6']);
export type VipFamily = Static<typeof VipFamily>;
const MemberConnectivity = Type.Enum(['L2', 'L3']);
export type MemberConnectivity = Static<typeof MemberConnectivity>;

const LoggingInput = Type.Object(
  {
    destination_region_id: Type.Optional(Nullable(IntegerId)),
    enabled: Type.Optional(Type.Boolean({ default: false })),
    retention_policy: Type.Optional(
      Nullable(
        Type.Object(
          { period: Nullable(Type.Integer({ exclusiveMinimum: 0, maximum: 1825 })) },
          { additionalProperties: false },
        ),
      ),
    ),
    topic_name: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: 223,
          pattern: '^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$',
        }),
      ),
    ),
  },
  { additionalProperties: false },
);
export type LoggingInput = Static<typeof LoggingInput>;

/** As stored. No log service is connected. */
export interface Logging {
  destination_region_id: number | null;
  enabled: boolean;
  retention_policy: { period: number | null } | null;
  topic_name: string | null;
}

/** Flavors differ in price only: one proxy process serves all load balancers. Units: `ram` is MiB. */
export const flavors = {
  'lb1-1-2': { vcpus: 1, ram: 2048 },
  'lb1-2-4': { vcpus: 2, ram: 4096 },
  'lb1-4-8': { vcpus: 4, ram: 8192 },
} as const;
export type FlavorName = keyof typeof flavors;
export const defaultFlavor: FlavorName = 'lb1-1-2';
export const FlavorName = Type.Enum(Object.keys(flavors) as FlavorName[]);

export const FloatingIp = Type.Union([
  Type.Object({ source: Type.Literal('new') }, { additionalProperties: false }),
  Type.Object({ source: Type.Literal('existing'), existing_floating_id: Uuid }, { additionalProperties: false }),
]);

const maxListeners = 51;

export const CreateLoadBalancer = Type.Object(
  {
    name: Name,
    flavor: Type.Optional(FlavorName),
    floating_ip: Type.Optional(FloatingIp),
    listeners: Type.Optional(Type.Array(NestedListener, { maxItems: maxListeners })),
    logging: Type.Optional(LoggingInput),
    preferred_connectivity: Type.Optional(MemberConnectivity),
    tags: Type.Optional(CreateTags),
    /** The name of the Terraform provider for tags. */
    metadata: Type.Optional(CreateTags),
    vip_ip_family: Type.Optional(VipFamily),
    vip_network_id: Type.Optional(Uuid),
    vip_port_id: Type.Optional(Uuid),
    vip_subnet_id: Type.Optional(Uuid),
  },
  { additionalProperties: false },
);
export type CreateLoadBalancer = Static<typeof CreateLoadBalancer>;

const updates = {
  name: Type.Optional(Name),
  logging: Type.Optional(LoggingInput),
  preferred_connectivity: Type.Optional(MemberConnectivity),
  tags: Type.Optional(UpdateTags),
};
export const UpdateLoadBalancerV1 = Type.Object(updates, { additionalProperties: false });
export const UpdateLoadBalancer = Type.Object(
  { ...updates, admin_state_up: Type.Optional(Type.Boolean()) },
  { additionalProperties: false },
);
export type UpdateLoadBalancer = Static<typeof UpdateLoadBalancer>;

export const ResizeLoadBalancer = Type.Object({ flavor: FlavorName }, { additionalProperties: false });
/** Null: no body. */
export const FailoverLoadBalancer = Nullable(
  Type.Object({ force: Type.Optional(Type.Boolean({ default: false })) }, { additionalProperties: false }),
);
export const RequestMetrics = Type.Object(
  { time_interval: Type.Integer({ minimum: 1, maximum: 8760 }), time_unit: Type.Enum(['day', 'hour']) },
  { additionalProperties: false },
);
export type RequestMetrics = Static<typeof RequestMetrics>;

/** Null: no body. */
export const CheckLoadBalancerLimits = Nullable(
  Type.Object(
    {
      floating_ip: Type.Optional(
        Type.Object(
          { source: Type.Enum(['existing', 'new']), existing_floating_id: Type.Optional(Uuid) },
          { additionalProperties: false },
        ),
      ),
      logging: Type.Optional(LoggingInput),
      vip_ip_family: Type.Optional(VipFamily),
      vip_network_id: Type.Optional(Uuid),
      vip_port_id: Type.Optional(Uuid),
    },
    { additionalProperties: false },
  ),
);

export type CheckLoadBalancerLimits = Static<typeof CheckLoadBalancerLimits>;

const orderings = [
  'created_at',
  'flavor',
  'name',
  'operating_status',
  'provisioning_status',
  'updated_at',
  'vip_address',
  'vip_ip_family',
] as const;
export type Ordering = (typeof orderings)[number];
export const ListLoadBalancers = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  assigned_floating: Type.Optional(Type.Boolean()),
  logging_enabled: Type.Optional(Type.Boolean()),
  name: Type.Optional(ShortText),
  order_by: Type.Optional(Type.Enum(orderings.flatMap((field) => [`${field}.asc`, `${field}.desc`] as const))),
  show_stats: Type.Optional(Type.Boolean({ default: false })),
  with_ddos: Type.Optional(Type.Boolean({ default: false })),
});
export type ListLoadBalancers = Static<typeof ListLoadBalancers>;
export const GetLoadBalancer = Type.Object({
  show_stats: Type.Optional(Type.Boolean({ default: false })),
  with_ddos: Type.Optional(Type.Boolean({ default: false })),
});

/** In the v1 replacement a key with null counts as absent. */
export const ReplaceTags = Type.Record(Type.String(), Nullable(Type.String({ maxLength: maxTagLength })), {
  propertyNames: Type.String({ minLength: 1, maxLength: maxTagLength }),
  maxProperties: maxTagChanges,
});
export type ReplaceTags = Static<typeof ReplaceTags>;
export const MetadataKey = Type.Object({ key: ShortText });
export const OptionalMetadataKey = Type.Object({ key: Type.Optional(ShortText) });

const Instant = Type.String({ format: 'date-time' });

export const LoadBalancer = Type.Object({
  id: Uuid,
  name: Type.String(),
  additional_vips: Type.Array(Type.Object({ ip_address: Type.String(), subnet_id: Uuid })),
  admin_state_up: Type.Boolean(),
  created_at: Instant,
  creator_task_id: Nullable(Uuid),
  ddos_profile: Type.Null(),
  flavor: Nullable(
    Type.Object({
      flavor_id: Type.String(),
      flavor_name: Type.String(),
      ram: Type.Integer({ description: 'MiB' }),
      vcpus: Type.Integer(),
    }),
  ),
  floating_ips: Type.Array(Type.Object({}), { maxItems: 0 }),
  listeners: Type.Array(Type.Object({ id: Uuid })),
  logging: Nullable(
    Type.Object({
      destination_region_id: Nullable(Type.Integer()),
      enabled: Type.Boolean(),
      retention_policy: Nullable(Type.Object({ period: Nullable(Type.Integer()) })),
      topic_name: Nullable(Type.String()),
    }),
  ),
  operating_status: OperatingStatus,
  preferred_connectivity: MemberConnectivity,
  project_id: Type.Integer(),
  provisioning_status: ProvisioningStatus,
  region: Type.String(),
  region_id: Type.Integer(),
  stats: Nullable(Stats),
  tags_v2: Type.Array(Tag),
  task_id: Nullable(Uuid),
  updated_at: Nullable(Instant),
  vip_address: Nullable(Type.String()),
  vip_fqdn: Type.Null(),
  vip_ip_family: Nullable(VipFamily),
  vip_port_id: Nullable(Uuid),
  vrrp_ips: Type.Array(
    Type.Object({
      ip_address: Type.String(),
      role: Type.Enum(['BACKUP', 'MASTER', 'STANDALONE']),
      subnet_id: Uuid,
    }),
  ),
});
export type LoadBalancer = Static<typeof LoadBalancer>;
export const LoadBalancerCollection = Collection(LoadBalancer);
export type LoadBalancerCollection = Static<typeof LoadBalancerCollection>;

const statuses = { id: Uuid, operating_status: OperatingStatus, provisioning_status: ProvisioningStatus };
const PoolStatus = Type.Object({
  ...statuses,
  name: Type.String(),
  health_monitor: Nullable(Type.Object({ ...statuses, type: Type.String() })),
  members: Type.Array(Type.Object({ ...statuses, address: Type.String(), protocol_port: Type.Integer() })),
});
export const LoadBalancerStatus = Type.Object({
  ...statuses,
  name: Type.String(),
  listeners: Type.Array(Type.Object({ ...statuses, name: Type.String(), pools: Type.Array(PoolStatus) })),
  tags: Type.Array(Tag),
});
export type LoadBalancerStatus = Static<typeof LoadBalancerStatus>;
export const LoadBalancerStatusCollection = Collection(LoadBalancerStatus);
export type LoadBalancerStatusCollection = Static<typeof LoadBalancerStatusCollection>;

const MaybeNumber = Nullable(Type.Number());
export const LoadBalancerMetricsCollection = Collection(
  Type.Object({
    cpu_util: MaybeNumber,
    memory_util: MaybeNumber,
    network_Bps_egress: MaybeNumber,
    network_Bps_ingress: MaybeNumber,
    network_pps_egress: MaybeNumber,
    network_pps_ingress: MaybeNumber,
    time: Nullable(Type.String()),
  }),
);
export type LoadBalancerMetricsCollection = Static<typeof LoadBalancerMetricsCollection>;

/** Only the quotas that would be exceeded. */
export const LoadBalancerQuota = Type.Object({
  loadbalancer_count_limit: Type.Optional(Type.Integer()),
  loadbalancer_count_requested: Type.Optional(Type.Integer()),
  loadbalancer_count_usage: Type.Optional(Type.Integer()),
  floating_count_limit: Type.Optional(Type.Integer()),
  floating_count_requested: Type.Optional(Type.Integer()),
  floating_count_usage: Type.Optional(Type.Integer()),
});
export type LoadBalancerQuota = Static<typeof LoadBalancerQuota>;
