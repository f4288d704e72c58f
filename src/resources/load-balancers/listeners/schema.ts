/** Requests and responses of load balancer listeners (docs/interface.md, "Listeners"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, IpNetwork, Name, Nullable, Paging, ShortText, Uuid } from '../../../http/shapes.ts';
import { NestedPool, OperatingStatus, ProvisioningStatus, Stats, Timeout } from '../pools/schema.ts';

export const ListenerPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, listener_id: Uuid });
export const ListenerProtocol = Type.Enum(['HTTP', 'HTTPS', 'PROMETHEUS', 'TCP', 'TERMINATED_HTTPS', 'UDP']);

export const UserListItem = Type.Object(
  {
    encrypted_password: Type.String({ maxLength: 128 }),
    username: Type.String({ maxLength: 32, pattern: '^[a-zA-Z0-9][a-zA-Z 0-9._\\-]{1,30}[a-zA-Z0-9._]$' }),
  },
  { additionalProperties: false },
);
export type UserListItem = Static<typeof UserListItem>;

const AllowedCidrs = Nullable(Type.Array(IpNetwork, { maxItems: 100 }));
const ConnectionLimit = Type.Integer({ minimum: -1, maximum: 1_000_000 });
const UserList = Type.Array(UserListItem, { maxItems: 3 });

/** The fields of a new listener, nested or not. */
const creation = {
  name: Name,
  protocol: ListenerProtocol,
  protocol_port: Type.Integer({ minimum: 1, maximum: 65535 }),
  allowed_cidrs: Type.Optional(AllowedCidrs),
  connection_limit: Type.Optional(ConnectionLimit),
  insert_x_forwarded: Type.Optional(Type.Boolean()),
  secret_id: Type.Optional(Type.Union([Type.Literal(''), Uuid])),
  sni_secret_id: Type.Optional(Type.Array(Uuid, { maxItems: 100 })),
  timeout_client_data: Type.Optional(Timeout),
  timeout_member_connect: Type.Optional(Timeout),
  timeout_member_data: Type.Optional(Timeout),
  user_list: Type.Optional(UserList),
};

/** A listener inside a new load balancer. */
export const NestedListener = Type.Object(
  { ...creation, pools: Type.Optional(Type.Array(NestedPool, { maxItems: 1 })) },
  { additionalProperties: false },
);
export type NestedListener = Static<typeof NestedListener>;

export const CreateListener = Type.Object(
  {
    ...creation,
    default_pool_id: Type.Optional(Uuid),
    load_balancer_id: Type.Optional(Uuid),
    /** The spelling of the Terraform provider. */
    loadbalancer_id: Type.Optional(Uuid),
  },
  { additionalProperties: false },
);
export type CreateListener = Static<typeof CreateListener>;

export const UpdateListener = Type.Object(
  {
    admin_state_up: Type.Optional(Type.Boolean()),
    allowed_cidrs: Type.Optional(AllowedCidrs),
    connection_limit: Type.Optional(ConnectionLimit),
    name: Type.Optional(Name),
    secret_id: Type.Optional(Nullable(Uuid)),
    sni_secret_id: Type.Optional(Nullable(Type.Array(Uuid, { maxItems: 100 }))),
    timeout_client_data: Type.Optional(Timeout),
    timeout_member_connect: Type.Optional(Timeout),
    timeout_member_data: Type.Optional(Timeout),
    user_list: Type.Optional(Nullable(UserList)),
  },
  { additionalProperties: false },
);
export type UpdateListener = Static<typeof UpdateListener>;

export const RenameListener = Type.Object({ name: Name }, { additionalProperties: false });

export const GetListener = Type.Object({ show_stats: Type.Optional(Type.Boolean({ default: false })) });
export const DeleteListener = Type.Object({ delete_default_pool: Type.Optional(Type.Boolean({ default: false })) });
export const ListListeners = Type.Object({
  ...Paging(1000),
  load_balancer_id: Type.Optional(Uuid),
  loadbalancer_id: Type.Optional(Uuid),
  name: Type.Optional(ShortText),
  show_stats: Type.Optional(Type.Boolean({ default: false })),
});
export type ListListeners = Static<typeof ListListeners>;

export const Listener = Type.Object({
  id: Uuid,
  name: Type.String(),
  admin_state_up: Type.Boolean(),
  allowed_cidrs: Nullable(Type.Array(Type.String())),
  connection_limit: Type.Integer(),
  creator_task_id: Nullable(Uuid),
  insert_headers: Type.Record(Type.String(), Type.String()),
  load_balancer_id: Nullable(Uuid),
  operating_status: OperatingStatus,
  pool_count: Nullable(Type.Integer()),
  protocol: ListenerProtocol,
  protocol_port: Type.Integer(),
  provisioning_status: ProvisioningStatus,
  secret_id: Nullable(Type.String()),
  sni_secret_id: Nullable(Type.Array(Type.String())),
  stats: Nullable(Stats),
  task_id: Nullable(Uuid),
  timeout_client_data: Nullable(Type.Integer()),
  timeout_member_connect: Nullable(Type.Integer()),
  timeout_member_data: Nullable(Type.Integer()),
  user_list: Type.Array(UserListItem),
});
export type Listener = Static<typeof Listener>;
export const ListenerCollection = Collection(Listener);
export type ListenerCollection = Static<typeof ListenerCollection>;
