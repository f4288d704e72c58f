/** Requests and responses of load balancer listeners. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  Described,
  exampleUuid,
  Input,
  IpNetwork,
  Name,
  Named,
  Nullable,
  OrNull,
  Paging,
  ShortText,
  TaskFields,
  Uuid,
} from '../../../http/shapes.ts';
import { examplePool, NestedPool } from '../pools/schema.ts';
import { listenerTimeouts, Port, ShowStats, StatsOrNull, statuses } from '../shapes.ts';

const ListenerProtocol = Type.Enum(['HTTP', 'HTTPS', 'PROMETHEUS', 'TCP', 'TERMINATED_HTTPS', 'UDP'], {
  title: 'ListenerProtocol',
  description:
    'Protocol of the clients. `HTTPS` passes TLS through to the members, `TERMINATED_HTTPS` decrypts it with the ' +
    'certificate `secret_id`, `PROMETHEUS` serves metrics of the load balancer at `/metrics`, over TLS with a `secret_id`, and has no pool',
});

const usernameRule =
  '3 to 32 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-`';

export const UserListItem = Input('ListenerUser', {
  encrypted_password: Type.String({
    maxLength: 128,
    description:
      'crypt(3) hash of the password: `$1$`; `$5$` or `$6$` with at most 5,000 rounds; or bcrypt (`$2b$`) with a cost ' +
      'of 4 to 6. `openssl passwd -6` and `htpasswd -nB` print such hashes',
  }),
  username: Type.String({
    maxLength: 32,
    pattern: pattern('^[a-zA-Z0-9][a-zA-Z 0-9._\\-]{1,30}[a-zA-Z0-9._]$', usernameRule),
    description: usernameRule,
  }),
});
export type UserListItem = Static<typeof UserListItem>;

const meanings = {
  admin_state_up: 'Whether the listener accepts connections',
  allowed_cidrs: 'Addresses and networks that may connect; null: all, an empty list: none',
  connection_limit:
    'Maximum number of open connections; more connections wait (UDP: are dropped). -1: 100,000, 0: no connections are accepted',
  secret_id:
    'ID of the secret with the certificate; required for `TERMINATED_HTTPS`, optional for `PROMETHEUS`, otherwise not supported',
  sni_secret_id: 'IDs of secrets with further certificates, selected by the TLS server name; requires `secret_id`',
  user_list: 'Users for HTTP basic authentication, at most 3; only for `HTTP`, `TERMINATED_HTTPS` and `PROMETHEUS`',
};

const AllowedCidrs = Named(
  'AllowedCidrs',
  Nullable(Type.Array(IpNetwork, { maxItems: 100 })),
  `${meanings.allowed_cidrs}. At most 100 entries`,
);
const ConnectionLimit = Type.Integer({ minimum: -1, maximum: 1_000_000, description: meanings.connection_limit });
const UserList = Type.Array(UserListItem, { maxItems: 3, description: meanings.user_list });
const SniSecretIds = Type.Array(Uuid, { maxItems: 100, description: meanings.sni_secret_id });

/** The settings of a new listener, on its own or inside a new load balancer. */
const creation = {
  name: Name,
  protocol: ListenerProtocol,
  protocol_port: Described(Port, 'Port number; one listener for each port, and another one for the same UDP port'),
  allowed_cidrs: Type.Optional(AllowedCidrs),
  connection_limit: Type.Optional(Described(ConnectionLimit, `${meanings.connection_limit}; 100,000 by default`)),
  insert_x_forwarded: Type.Optional(
    Type.Boolean({
      description:
        'Whether requests to members get the headers `X-Forwarded-For`, `X-Forwarded-Port` and `X-Forwarded-Proto`; ' +
        'false by default, only for `HTTP` and `TERMINATED_HTTPS`',
    }),
  ),
  secret_id: Type.Optional(Described(Type.Union([Type.Literal(''), Uuid]), `${meanings.secret_id}. Empty: none`)),
  sni_secret_id: Type.Optional(SniSecretIds),
  ...listenerTimeouts.input,
  user_list: Type.Optional(UserList),
};

const exampleListener = { name: 'web', protocol: 'HTTP', protocol_port: 80 };
export const exampleNestedListener = { ...exampleListener, pools: [examplePool] };

/** A listener inside a new load balancer. */
export const NestedListener = Input('CreateNestedListener', {
  ...creation,
  pools: Type.Optional(Type.Array(NestedPool, { maxItems: 1, description: 'The default pool, at most one' })),
});
export type NestedListener = Static<typeof NestedListener>;

export const CreateListener = Body('CreateListener', [{ ...exampleListener, load_balancer_id: exampleUuid }], {
  ...creation,
  default_pool_id: Type.Optional(
    Described(Uuid, 'ID of a pool of the load balancer that gets the traffic; no other listener may use it'),
  ),
  load_balancer_id: Type.Optional(Described(Uuid, 'ID of the load balancer; required')),
  // The spelling of the Terraform provider.
  loadbalancer_id: Type.Optional({ ...Described(Uuid, 'Use `load_balancer_id`'), deprecated: true }),
});
export type CreateListener = Static<typeof CreateListener>;

export const UpdateListener = Body('UpdateListener', [{ connection_limit: 5000, allowed_cidrs: ['10.0.0.0/8'] }], {
  admin_state_up: Type.Optional(Type.Boolean({ description: meanings.admin_state_up })),
  allowed_cidrs: Type.Optional(AllowedCidrs),
  connection_limit: Type.Optional(ConnectionLimit),
  name: Type.Optional(Name),
  secret_id: Type.Optional(Described(Nullable(Uuid), meanings.secret_id)),
  sni_secret_id: Type.Optional(Described(Nullable(SniSecretIds), `${meanings.sni_secret_id}. Null removes all`)),
  ...listenerTimeouts.input,
  user_list: Type.Optional(Described(Nullable(UserList), `${meanings.user_list}. Null removes all`)),
});
export type UpdateListener = Static<typeof UpdateListener>;

export const RenameListener = Body('RenameListener', [{ name: 'renamed-listener' }], { name: Name });

export const GetListener = Type.Object({ show_stats: ShowStats });
export const DeleteListener = Type.Object({
  delete_default_pool: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to delete the default pool with the listener' }),
  ),
});
export const ListListeners = Type.Object({
  ...Paging(1000),
  load_balancer_id: Type.Optional(Described(Uuid, 'Only listeners of this load balancer')),
  loadbalancer_id: Type.Optional({ ...Described(Uuid, 'Use `load_balancer_id`'), deprecated: true }),
  name: Type.Optional(Described(ShortText, 'Only listeners whose name contains this text')),
  show_stats: ShowStats,
});
export type ListListeners = Static<typeof ListListeners>;

export const Listener = Component('Listener', {
  id: Described(Uuid, 'ID of the listener'),
  ...statuses,
  ...TaskFields,
  name: Type.String({ description: 'Name of the listener' }),
  admin_state_up: Type.Boolean({ description: meanings.admin_state_up }),
  allowed_cidrs: Described(Nullable(Type.Array(Type.String())), meanings.allowed_cidrs),
  connection_limit: Type.Integer({ description: meanings.connection_limit }),
  insert_headers: Type.Record(Type.String(), Type.String(), {
    description: 'Headers that requests to members get: `X-Forwarded-…` with the value `true`, or none',
  }),
  load_balancer_id: Described(Nullable(Uuid), 'ID of the load balancer'),
  pool_count: OrNull.integer('Number of pools that get its traffic: the default pool and those of L7 policies'),
  protocol: ListenerProtocol,
  protocol_port: Type.Integer({ description: 'Port number' }),
  secret_id: OrNull.text('ID of the secret with the certificate'),
  sni_secret_id: Described(Nullable(Type.Array(Type.String())), 'IDs of the secrets with further certificates'),
  stats: StatsOrNull,
  ...listenerTimeouts.output,
  user_list: Type.Array(UserListItem, {
    description: 'Users for HTTP basic authentication. Tokens with the role `reader` see `*` instead of a hash',
  }),
});
export type Listener = Static<typeof Listener>;
export const ListenerCollection = Collection(Listener);
