/** Requests and responses of load balancer pools (docs/interface.md, "Pools"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, IpAddress, Name, Nullable, Paging, ShortText, Uuid } from '../../../http/shapes.ts';

export const PoolPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, pool_id: Uuid });
export const MemberPath = Type.Object({ ...PoolPath.properties, member_id: Uuid });

/** Every part has two statuses: whether it works (operating), and whether the host has its settings (provisioning). */
export const operatingStatuses = ['DEGRADED', 'DRAINING', 'ERROR', 'NO_MONITOR', 'OFFLINE', 'ONLINE'] as const;
export const OperatingStatus = Type.Enum([...operatingStatuses]);
export type OperatingStatus = Static<typeof OperatingStatus>;
const provisioningStatuses = [
  'ACTIVE',
  'DELETED',
  'ERROR',
  'PENDING_CREATE',
  'PENDING_DELETE',
  'PENDING_UPDATE',
] as const;
export const ProvisioningStatus = Type.Enum([...provisioningStatuses]);
export type ProvisioningStatus = Static<typeof ProvisioningStatus>;

export const Stats = Type.Object({
  active_connections: Type.Integer(),
  bytes_in: Type.Integer(),
  bytes_out: Type.Integer(),
  request_errors: Type.Integer(),
  total_connections: Type.Integer(),
});
export type Stats = Static<typeof Stats>;

const LbAlgorithm = Type.Enum(['LEAST_CONNECTIONS', 'ROUND_ROBIN', 'SOURCE_IP']);
const PoolProtocol = Type.Enum(['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP', 'UDP']);

/** Units: milliseconds. Null and 0, which the Terraform provider sends, mean the default. */
export const Timeout = Nullable(Type.Integer({ minimum: 0, maximum: 86_400_000 }));
const Port = Type.Integer({ minimum: 1, maximum: 65535 });

export const monitorTypes = ['HTTP', 'HTTPS', 'K8S', 'PING', 'TCP', 'TLS-HELLO', 'UDP-CONNECT'] as const;
const MonitorType = Type.Enum([...monitorTypes]);
const HttpMethod = Type.Enum(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE']);

const monitor = {
  admin_state_up: Type.Optional(Type.Boolean()),
  delay: Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'seconds between two checks' }),
  domain_name: Type.Optional(Nullable(Type.String({ pattern: '^[A-Za-z0-9._-]{1,253}$', maxLength: 253 }))),
  expected_codes: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  http_method: Type.Optional(Nullable(HttpMethod)),
  http_version: Type.Optional(Nullable(Type.Enum(['1.0', '1.1']))),
  max_retries: Type.Integer({ minimum: 1, maximum: 10, description: 'successful checks until a member is up' }),
  max_retries_down: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10, description: 'failed checks until a member is down' }),
  ),
  timeout: Type.Integer({ minimum: 1, maximum: 2_147_483, description: 'seconds' }),
  url_path: Type.Optional(Nullable(Type.String({ pattern: '^/([^/?#%][^?#%]*)?$', maxLength: 255 }))),
  // The Terraform provider sends the id back; it is ignored.
  id: Type.Optional(Nullable(ShortText)),
};

export const CreateHealthMonitor = Type.Object({ ...monitor, type: MonitorType }, { additionalProperties: false });
export type CreateHealthMonitor = Static<typeof CreateHealthMonitor>;
const UpdateHealthMonitor = Type.Object(
  { ...monitor, type: Type.Optional(Nullable(MonitorType)) },
  { additionalProperties: false },
);
export type UpdateHealthMonitor = Static<typeof UpdateHealthMonitor>;

/** Absent fields keep their value, null removes it. */
export const PatchHealthMonitor = Type.Object(Type.Partial(Type.Object(monitor)).properties, {
  additionalProperties: false,
});
export type PatchHealthMonitor = Static<typeof PatchHealthMonitor>;

/** As stored; times are in seconds. */
export interface HealthMonitor {
  id: string;
  type: (typeof monitorTypes)[number];
  admin_state_up: boolean;
  delay: number;
  timeout: number;
  max_retries: number;
  max_retries_down: number;
  http_method: Static<typeof HttpMethod> | null;
  http_version: '1.0' | '1.1' | null;
  url_path: string | null;
  domain_name: string | null;
  expected_codes: string | null;
}

const persistenceTypes = ['APP_COOKIE', 'HTTP_COOKIE', 'SOURCE_IP'] as const;
const MutateSessionPersistence = Type.Object(
  {
    cookie_name: Type.Optional(Nullable(Name)),
    persistence_granularity: Type.Optional(Nullable(Type.String({ maxLength: 64 }))),
    persistence_timeout: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 2_147_483 }))),
    type: Type.Enum([...persistenceTypes]),
  },
  { additionalProperties: false },
);
export type MutateSessionPersistence = Static<typeof MutateSessionPersistence>;

/** As stored. */
export interface SessionPersistence {
  type: (typeof persistenceTypes)[number];
  cookie_name: string | null;
  persistence_granularity: string | null;
  persistence_timeout: number | null;
}

export const maxMembers = 1000;

export const CreateMember = Type.Object(
  {
    address: IpAddress,
    protocol_port: Port,
    admin_state_up: Type.Optional(Type.Boolean({ default: true })),
    backup: Type.Optional(Type.Boolean({ default: false })),
    instance_id: Type.Optional(Nullable(Uuid)),
    monitor_address: Type.Optional(Nullable(IpAddress)),
    monitor_port: Type.Optional(Nullable(Port)),
    subnet_id: Type.Optional(Nullable(Uuid)),
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 256 })),
    // Clients send fields of responses back; they are ignored.
    id: Type.Optional(Nullable(ShortText)),
    operating_status: Type.Optional(Nullable(ShortText)),
    provisioning_status: Type.Optional(Nullable(ShortText)),
  },
  { additionalProperties: false },
);
export type CreateMember = Static<typeof CreateMember>;

export const ReplaceMembers = Type.Array(CreateMember, { maxItems: maxMembers });

/** Absent fields keep their value. The address and port identify the member and cannot change. */
export const UpdateMember = Type.Object(
  {
    admin_state_up: Type.Optional(Type.Boolean()),
    backup: Type.Optional(Type.Boolean()),
    monitor_address: Type.Optional(Nullable(IpAddress)),
    monitor_port: Type.Optional(Nullable(Port)),
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 256 })),
  },
  { additionalProperties: false },
);
export type UpdateMember = Static<typeof UpdateMember>;

const settings = {
  ca_secret_id: Type.Optional(Nullable(Uuid)),
  crl_secret_id: Type.Optional(Nullable(Uuid)),
  secret_id: Type.Optional(Nullable(Uuid)),
  session_persistence: Type.Optional(Nullable(MutateSessionPersistence)),
  timeout_client_data: Type.Optional(Timeout),
  timeout_member_connect: Type.Optional(Timeout),
  timeout_member_data: Type.Optional(Timeout),
};

const creation = {
  ...settings,
  healthmonitor: Type.Optional(Nullable(CreateHealthMonitor)),
  lb_algorithm: LbAlgorithm,
  members: Type.Optional(Type.Array(CreateMember, { maxItems: maxMembers })),
  name: Name,
  protocol: PoolProtocol,
};

/** A pool inside a listener of a new load balancer. */
export const NestedPool = Type.Object(creation, { additionalProperties: false });
export type NestedPool = Static<typeof NestedPool>;

export const CreatePool = Type.Object(
  {
    ...creation,
    listener_id: Type.Optional(Nullable(Uuid)),
    load_balancer_id: Type.Optional(Nullable(Uuid)),
    /** The spelling of the Terraform provider. */
    loadbalancer_id: Type.Optional(Nullable(Uuid)),
  },
  { additionalProperties: false },
);
export type CreatePool = Static<typeof CreatePool>;

export const UpdatePool = Type.Object(
  {
    ...settings,
    admin_state_up: Type.Optional(Type.Boolean()),
    healthmonitor: Type.Optional(Nullable(UpdateHealthMonitor)),
    lb_algorithm: Type.Optional(LbAlgorithm),
    members: Type.Optional(Nullable(Type.Array(CreateMember, { maxItems: maxMembers }))),
    name: Type.Optional(Name),
    protocol: Type.Optional(PoolProtocol),
  },
  { additionalProperties: false },
);
export type UpdatePool = Static<typeof UpdatePool>;

export const ListPools = Type.Object({
  ...Paging(1000),
  details: Type.Optional(Type.Boolean({ default: false })),
  listener_id: Type.Optional(Uuid),
  load_balancer_id: Type.Optional(Uuid),
  loadbalancer_id: Type.Optional(Uuid),
  name: Type.Optional(ShortText),
});
export type ListPools = Static<typeof ListPools>;

const statuses = { operating_status: OperatingStatus, provisioning_status: ProvisioningStatus };
const Reference = Type.Object({ id: Uuid });
const NullableText = Nullable(Type.String());
const NullableWhole = Nullable(Type.Integer());

export const Member = Type.Object({
  id: Uuid,
  ...statuses,
  address: Type.String(),
  admin_state_up: Type.Boolean(),
  backup: Type.Boolean(),
  monitor_address: NullableText,
  monitor_port: NullableWhole,
  protocol_port: Type.Integer(),
  subnet_id: Nullable(Uuid),
  weight: Type.Integer(),
});
export type Member = Static<typeof Member>;
export const MemberCollection = Collection(Member);
export type MemberCollection = Static<typeof MemberCollection>;

export const ListMembers = Type.Object({
  ...Paging(1000),
  order_by: Type.Optional(Type.Enum(['address.asc', 'address.desc', 'created_at.asc', 'created_at.desc'])),
});
export type ListMembers = Static<typeof ListMembers>;

export const HealthMonitorView = Type.Object({
  id: Uuid,
  ...statuses,
  admin_state_up: Type.Boolean(),
  delay: Type.Integer(),
  domain_name: NullableText,
  expected_codes: NullableText,
  http_method: NullableText,
  http_version: NullableText,
  max_retries: Type.Integer(),
  max_retries_down: Type.Integer(),
  timeout: Type.Integer(),
  type: MonitorType,
  url_path: NullableText,
});

const pool = {
  id: Uuid,
  ...statuses,
  name: Type.String(),
  admin_state_up: Type.Boolean(),
  ca_secret_id: Nullable(Uuid),
  creator_task_id: Nullable(Uuid),
  crl_secret_id: Nullable(Uuid),
  healthmonitor: Nullable(HealthMonitorView),
  lb_algorithm: LbAlgorithm,
  listeners: Type.Array(Reference),
  loadbalancers: Type.Array(Reference),
  protocol: PoolProtocol,
  secret_id: Nullable(Uuid),
  session_persistence: Nullable(
    Type.Object({
      cookie_name: NullableText,
      persistence_granularity: NullableText,
      persistence_timeout: NullableWhole,
      type: Type.Enum([...persistenceTypes]),
    }),
  ),
  task_id: Nullable(Uuid),
  timeout_client_data: NullableWhole,
  timeout_member_connect: NullableWhole,
  timeout_member_data: NullableWhole,
};
export const LbPool = Type.Object({ ...pool, members: Type.Array(Member) });
export type LbPool = Static<typeof LbPool>;
/** Without `details` a list contains only the ids of members. */
export const LbPoolCollection = Collection(
  Type.Object({ ...pool, members: Type.Array(Type.Union([Member, Reference])) }),
);
export type LbPoolCollection = Static<typeof LbPoolCollection>;
