/** Requests and responses of load balancer pools and their health monitors. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  Described,
  exampleUuid,
  Input,
  Name,
  Named,
  Nullable,
  OrNull,
  Paging,
  ShortText,
  TaskFields,
  Uuid,
} from '../../../http/shapes.ts';
import { CreateMember, maxMembers, Member } from '../members/schema.ts';
import { poolTimeouts, statuses, statusesOfPoolPart } from '../shapes.ts';

const LbAlgorithm = Type.Enum(['LEAST_CONNECTIONS', 'ROUND_ROBIN', 'SOURCE_IP'], {
  title: 'LbPoolAlgorithm',
  description:
    'Which member gets a connection or request. `ROUND_ROBIN`: the next one; `LEAST_CONNECTIONS`: the one with the ' +
    'fewest connections; `SOURCE_IP`: the one that a hash of the client address selects',
});
const PoolProtocol = Type.Enum(['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP', 'UDP'], {
  title: 'LbPoolProtocol',
  description:
    'Protocol of the members. It must fit the listener; `HTTPS` encrypts behind HTTP and TERMINATED_HTTPS listeners, ' +
    '`PROXY` and `PROXYV2` send the client address in a PROXY protocol header of version 1 or 2',
});

const MonitorType = Type.Enum(['HTTP', 'HTTPS', 'K8S', 'PING', 'TCP', 'TLS-HELLO', 'UDP-CONNECT'], {
  title: 'HealthMonitorType',
  description:
    'How a member is checked. `HTTP`, `HTTPS`: a request; `K8S`: as `HTTP`; `TCP`: a connection; `TLS-HELLO`: a TLS ' +
    'handshake; `PING`: an ICMP echo; `UDP-CONNECT`: a datagram, for UDP pools. UDP pools support `PING` and `UDP-CONNECT`',
});
const HttpMethod = Type.Enum(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'], {
  title: 'HttpMethod',
});

const monitorMeanings = {
  admin_state_up: 'Whether members are checked',
  delay: 'Time between two checks of a member, in seconds',
  domain_name: 'Host name of HTTP and HTTPS checks, in the header `Host` and as the TLS server name',
  expected_codes: 'HTTP statuses of a healthy member: statuses and ranges, such as `200,202,300-302`; `200` by default',
  http_method: 'Method of HTTP and HTTPS checks; `GET` by default',
  http_version: 'Version of HTTP and HTTPS checks; null: `1.1` with a `domain_name`, otherwise `1.0`',
  max_retries: 'Number of successful checks in a row after which a member is up',
  max_retries_down: 'Number of failed checks in a row after which a member is down; 3 by default',
  timeout: 'Time limit of a check in seconds; less than `delay`',
  url_path: 'Path of HTTP and HTTPS checks; `/` by default',
};

const Ignored = Type.Optional(Described(Nullable(ShortText), 'Accepted and ignored'));
const monitor = {
  admin_state_up: Type.Optional(Type.Boolean({ description: `${monitorMeanings.admin_state_up}; true by default` })),
  delay: Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: monitorMeanings.delay }),
  domain_name: Type.Optional(
    Described(
      Nullable(
        Type.String({
          pattern: pattern('^[A-Za-z0-9._-]{1,253}$', 'a host name of letters, digits, `.`, `_` and `-`'),
          maxLength: 253,
        }),
      ),
      monitorMeanings.domain_name,
    ),
  ),
  expected_codes: Type.Optional(
    Described(Nullable(Type.String({ minLength: 1, maxLength: 255 })), monitorMeanings.expected_codes),
  ),
  http_method: Type.Optional(Described(Nullable(HttpMethod), monitorMeanings.http_method)),
  http_version: Type.Optional(Described(Nullable(Type.Enum(['1.0', '1.1'])), monitorMeanings.http_version)),
  max_retries: Type.Integer({ minimum: 1, maximum: 10, description: monitorMeanings.max_retries }),
  max_retries_down: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10, description: monitorMeanings.max_retries_down }),
  ),
  timeout: Type.Integer({ minimum: 1, maximum: 2_147_483, description: monitorMeanings.timeout }),
  url_path: Type.Optional(
    Described(
      Nullable(
        Type.String({
          pattern: pattern(
            '^/([^/?#%][^?#%]*)?$',
            'a path such as /health: one leading slash, without `?`, `#` and `%`',
          ),
          maxLength: 255,
        }),
      ),
      monitorMeanings.url_path,
    ),
  ),
  // Clients repeat them from responses.
  ...{ id: Ignored, operating_status: Ignored, provisioning_status: Ignored },
};

const exampleMonitor = { type: 'HTTP', url_path: '/healthz', delay: 10, timeout: 5, max_retries: 3 };

export const CreateHealthMonitor = Body('CreateLbPoolHealthMonitor', [exampleMonitor], {
  ...monitor,
  type: MonitorType,
});
export type CreateHealthMonitor = Static<typeof CreateHealthMonitor>;

const UpdateHealthMonitor = Input('ReplaceLbPoolHealthMonitor', {
  ...monitor,
  type: Type.Optional(
    Described(Nullable(MonitorType), 'Type of the checks; null: the current type. Required for a new monitor'),
  ),
});
export type UpdateHealthMonitor = Static<typeof UpdateHealthMonitor>;

export const PatchHealthMonitor = Body(
  'UpdateLbPoolHealthMonitor',
  [{ delay: 20 }],
  { ...Type.Partial(Type.Object(monitor)).properties, type: UpdateHealthMonitor.properties.type },
  'Omitted fields are unchanged, null restores the default',
);
export type PatchHealthMonitor = Static<typeof PatchHealthMonitor>;

/** As stored; times are in seconds. */
export type HealthMonitor = Required<Omit<CreateHealthMonitor, 'id' | `${string}_status`>> & { id: string };

const PersistenceType = Type.Enum(['APP_COOKIE', 'HTTP_COOKIE', 'SOURCE_IP'], {
  description:
    'How a client is recognized. `SOURCE_IP`: by its address; `HTTP_COOKIE`: by a cookie that the proxy sets; ' +
    '`APP_COOKIE`: by a cookie that the members set. Cookies require an HTTP or HTTPS pool',
});
const cookieName =
  'Name of the cookie. `APP_COOKIE`: required, the cookie that the members set. `HTTP_COOKIE`: the cookie that the proxy ' +
  'sets; `SRV_…` by default. Pools of one host name need different names';
const granularity =
  'Netmask such as `255.255.255.0`: clients whose masked addresses are equal use the same member; only for `SOURCE_IP` in ' +
  'UDP pools';
const persistenceTimeout =
  'Time in seconds that an inactive client keeps its member at least; null or 0: no minimum. A hash of the address selects ' +
  'the member, so a client keeps it until the members change; only for `SOURCE_IP` in UDP pools';

const MutateSessionPersistence = Input('LbPoolSessionPersistenceInput', {
  cookie_name: Type.Optional(Described(Nullable(Name), cookieName)),
  persistence_granularity: Type.Optional(Described(Nullable(Type.String({ maxLength: 64 })), granularity)),
  persistence_timeout: Type.Optional(
    Described(Nullable(Type.Integer({ minimum: 0, maximum: 2_147_483 })), persistenceTimeout),
  ),
  type: PersistenceType,
});
export type MutateSessionPersistence = Static<typeof MutateSessionPersistence>;

/** As stored. */
export type SessionPersistence = Required<MutateSessionPersistence>;

const meanings = {
  ca_secret_id:
    'ID of the secret with the CA certificates that verify the members, the root CA included; only for HTTPS pools',
  crl_secret_id:
    'ID of the secret with the revocation lists of all CAs of the members, the root CA included; requires `ca_secret_id`',
  secret_id: 'ID of the secret with the client certificate that the members receive; only for HTTPS pools',
  session_persistence: 'Keeps a client on the same member; null: off',
  healthmonitor: 'Health monitor; null: members are not checked',
};

const settings = {
  ca_secret_id: Type.Optional(Named('MemberCaSecretId', Nullable(Uuid), meanings.ca_secret_id)),
  crl_secret_id: Type.Optional(Named('MemberCrlSecretId', Nullable(Uuid), meanings.crl_secret_id)),
  secret_id: Type.Optional(Named('MemberSecretId', Nullable(Uuid), meanings.secret_id)),
  session_persistence: Type.Optional(Described(Nullable(MutateSessionPersistence), meanings.session_persistence)),
  ...poolTimeouts.input,
};

const creation = {
  ...settings,
  healthmonitor: Type.Optional(Described(Nullable(CreateHealthMonitor), meanings.healthmonitor)),
  lb_algorithm: LbAlgorithm,
  members: Type.Optional(
    Type.Array(CreateMember, { maxItems: maxMembers, description: 'Members, at most 1,000; none by default' }),
  ),
  name: Name,
  protocol: PoolProtocol,
};

export const examplePool = {
  name: 'web-pool',
  protocol: 'HTTP',
  lb_algorithm: 'ROUND_ROBIN',
  members: [{ address: '10.0.0.11', protocol_port: 8080 }],
  healthmonitor: exampleMonitor,
};

/** A pool inside a listener of a new load balancer. */
export const NestedPool = Input('CreateNestedLbPool', creation);
export type NestedPool = Static<typeof NestedPool>;

export const CreatePool = Body('CreateLbPool', [{ ...examplePool, listener_id: exampleUuid }], {
  ...creation,
  listener_id: Type.Optional(
    Described(Nullable(Uuid), 'ID of the listener whose default pool this becomes; by default no listener uses it'),
  ),
  load_balancer_id: Type.Optional(Described(Nullable(Uuid), 'ID of the load balancer; required without `listener_id`')),
  // The spelling of the Terraform provider.
  loadbalancer_id: Type.Optional({
    ...Described(Nullable(Uuid), 'Use `load_balancer_id`'),
    deprecated: true,
  }),
});
export type CreatePool = Static<typeof CreatePool>;

export const UpdatePool = Body(
  'UpdateLbPool',
  [{ lb_algorithm: 'LEAST_CONNECTIONS', session_persistence: { type: 'SOURCE_IP' } }],
  {
    ...settings,
    admin_state_up: Type.Optional(Type.Boolean({ description: 'Whether members get traffic' })),
    healthmonitor: Type.Optional(
      Described(Nullable(UpdateHealthMonitor), 'Replaces the health monitor; null removes it'),
    ),
    lb_algorithm: Type.Optional(LbAlgorithm),
    members: Type.Optional(
      Described(
        Nullable(Type.Array(CreateMember, { maxItems: maxMembers })),
        'Replaces the members, at most 1,000; a member with the same address and port keeps its ID; null removes all',
      ),
    ),
    name: Type.Optional(Name),
    protocol: Type.Optional(PoolProtocol),
  },
);
export type UpdatePool = Static<typeof UpdatePool>;

export const ListPools = Type.Object({
  ...Paging(1000),
  details: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to return whole members instead of their IDs' }),
  ),
  // The Terraform provider sends an empty one with each `loadbalancer_id`.
  listener_id: Type.Optional(
    Described(Type.Union([Type.Literal(''), Uuid]), 'Only the default pool of this listener; empty: no filter'),
  ),
  load_balancer_id: Type.Optional(Described(Uuid, 'Only pools of this load balancer')),
  loadbalancer_id: Type.Optional({ ...Described(Uuid, 'Use `load_balancer_id`'), deprecated: true }),
  name: Type.Optional(Described(ShortText, 'Only pools whose name contains this text')),
});
export type ListPools = Static<typeof ListPools>;

const MemberReference = Component('LbPoolMemberReference', { id: Described(Uuid, 'ID of the member') });

export const HealthMonitorView = Component('LbPoolHealthMonitor', {
  id: Described(Uuid, 'ID of the health monitor'),
  ...statusesOfPoolPart,
  admin_state_up: Type.Boolean({ description: monitorMeanings.admin_state_up }),
  delay: Type.Integer({ description: monitorMeanings.delay }),
  domain_name: OrNull.text(monitorMeanings.domain_name),
  expected_codes: OrNull.text(monitorMeanings.expected_codes),
  http_method: OrNull.text(monitorMeanings.http_method),
  http_version: OrNull.text(monitorMeanings.http_version),
  max_retries: Type.Integer({ description: monitorMeanings.max_retries }),
  max_retries_down: Type.Integer({ description: monitorMeanings.max_retries_down }),
  timeout: Type.Integer({ description: monitorMeanings.timeout }),
  type: MonitorType,
  url_path: OrNull.text(monitorMeanings.url_path),
});

const SessionPersistenceView = Component('LbPoolSessionPersistence', {
  cookie_name: OrNull.text(cookieName),
  persistence_granularity: OrNull.text(granularity),
  persistence_timeout: OrNull.integer(persistenceTimeout),
  type: PersistenceType,
});

const pool = {
  id: Described(Uuid, 'ID of the pool'),
  ...statuses,
  ...TaskFields,
  name: Type.String({ description: 'Name of the pool' }),
  admin_state_up: Type.Boolean({ description: 'Whether members get traffic' }),
  ca_secret_id: Described(Nullable(Uuid), meanings.ca_secret_id),
  crl_secret_id: Described(Nullable(Uuid), meanings.crl_secret_id),
  healthmonitor: Described(Nullable(HealthMonitorView), meanings.healthmonitor),
  lb_algorithm: LbAlgorithm,
  listeners: Type.Array(Component('ListenerReference', { id: Described(Uuid, 'ID of the listener') }), {
    description:
      'The listener whose default pool this is, if any. Listeners whose L7 policies redirect to the pool are not shown',
  }),
  loadbalancers: Type.Array(Component('LoadBalancerReference', { id: Described(Uuid, 'ID of the load balancer') }), {
    description: 'The load balancer of the pool',
  }),
  protocol: PoolProtocol,
  secret_id: Described(Nullable(Uuid), meanings.secret_id),
  session_persistence: Described(Nullable(SessionPersistenceView), meanings.session_persistence),
  ...poolTimeouts.output,
};

export const LbPool = Component('LbPool', {
  ...pool,
  members: Type.Array(Member, { description: 'Members, in the order of the request' }),
});
export type LbPool = Static<typeof LbPool>;

const ListedPool = Component('ListedLbPool', {
  ...pool,
  members: Type.Array(Type.Union([Member, MemberReference]), {
    description: 'IDs of the members; members with `details`',
  }),
});
export type ListedPool = Static<typeof ListedPool>;
export const LbPoolCollection = { ...Collection(ListedPool), title: 'LbPoolCollection' };
