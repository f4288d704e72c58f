/** Requests and responses of load balancers. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  Input,
  IntegerId,
  Name,
  Nullable,
  OrderBy,
  OrNull,
  Paging,
  PlaceFields,
  RequiredQuota,
  ShortText,
  TaskFields,
  Uuid,
} from '../../http/shapes.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { newTagFields, Tag, UpdateTags } from '../../tags/tags.ts';
import { exampleNestedListener, NestedListener } from './listeners/schema.ts';
import { ShowStats, StatsOrNull, statuses } from './shapes.ts';

export const VipFamily = Type.Enum(['dual', 'ipv4', 'ipv6'], {
  description: 'Family of the addresses; `ipv6` and `dual` require an IPv6 range of the region',
});
export type VipFamily = Static<typeof VipFamily>;
const MemberConnectivity = Type.Enum(['L2', 'L3'], {
  description: 'Stored and returned without effect: members are always reached by their IP addresses (L3)',
});
export type MemberConnectivity = Static<typeof MemberConnectivity>;

const logging = {
  destination_region_id: 'ID of the region of the log service',
  enabled: 'Whether logging is requested',
  retention_policy: 'How long logs are retained; null: no limit',
  period: 'Retention in days; null: no limit',
  topic_name: 'Topic of the log service',
};
const noLogs = 'Log settings, stored and returned without effect: no log service is connected';

const LoggingInput = Input(
  'LoadBalancerLoggingInput',
  {
    destination_region_id: Type.Optional(Described(Nullable(IntegerId), logging.destination_region_id)),
    enabled: Type.Optional(Type.Boolean({ default: false, description: logging.enabled })),
    retention_policy: Type.Optional(
      Described(
        Nullable(
          Input('LoadBalancerLogRetentionInput', {
            period: Described(Nullable(Type.Integer({ exclusiveMinimum: 0, maximum: 1825 })), logging.period),
          }),
        ),
        logging.retention_policy,
      ),
    ),
    topic_name: Type.Optional(
      Described(
        Nullable(
          Type.String({
            minLength: 1,
            maxLength: 223,
            pattern: pattern(
              '^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$',
              '1 to 223 lowercase letters, digits, `-` and `.`, each part starting and ending with a letter or digit',
            ),
          }),
        ),
        logging.topic_name,
      ),
    ),
  },
  noLogs,
);
export type LoggingInput = Static<typeof LoggingInput>;

/** As stored. */
export type Logging = Required<LoggingInput>;

/** Flavors differ in price only: one proxy process serves all load balancers. */
export const FlavorName = Type.String({
  minLength: 1,
  maxLength: 63,
  description: 'Name of a flavor of the region',
  examples: ['lb1-1-2'],
});
export const exampleFlavor = 'lb1-1-2';

export const FloatingIp = Type.Union(
  [
    Input('NewFloatingIp', { source: Type.Literal('new', { description: 'A new floating IP' }) }),
    Input('ExistingFloatingIp', {
      source: Type.Literal('existing', { description: 'An existing floating IP' }),
      existing_floating_id: Described(Uuid, 'ID of the floating IP'),
    }),
  ],
  { title: 'LoadBalancerFloatingIp', description: 'Not supported: requests with a floating IP are rejected' },
);

const maxListeners = 51;

export const CreateLoadBalancer = Body(
  'CreateLoadBalancer',
  [{ name: 'my-load-balancer', listeners: [exampleNestedListener], tags: { team: 'web' } }],
  {
    name: Name,
    flavor: Type.Optional(
      Described(FlavorName, 'Flavor, the first one of the region by default; flavors differ in price only'),
    ),
    floating_ip: Type.Optional(FloatingIp),
    listeners: Type.Optional(
      Type.Array(NestedListener, {
        maxItems: maxListeners,
        description: `Listeners with their pools, at most ${maxListeners}; none by default`,
      }),
    ),
    logging: Type.Optional(LoggingInput),
    preferred_connectivity: Type.Optional(MemberConnectivity),
    ...newTagFields,
    vip_ip_family: Type.Optional(VipFamily),
    vip_network_id: Type.Optional(
      Described(Uuid, 'ID of the network to show; by default the default network of the project. Nothing is routed'),
    ),
    vip_port_id: Type.Optional(Described(Uuid, 'Not supported: the region assigns the address')),
    vip_subnet_id: Type.Optional(
      Described(
        Uuid,
        'ID of the subnet to show; by default the first one of the network. Ignored without `vip_network_id`',
      ),
    ),
  },
);
export type CreateLoadBalancer = Static<typeof CreateLoadBalancer>;

const updates = {
  name: Type.Optional(Name),
  logging: Type.Optional(Described(Nullable(LoggingInput), `${noLogs}; null: none`)),
  preferred_connectivity: Type.Optional(MemberConnectivity),
  tags: Type.Optional(UpdateTags),
};
const exampleUpdate = { name: 'renamed-load-balancer', tags: { team: null, stage: 'test' } };

export const UpdateLoadBalancerV1 = Body('UpdateLoadBalancerV1', [exampleUpdate], {
  ...updates,
  flavor: Type.Optional(
    Type.Null({
      description: 'Accepted and ignored: the Terraform provider sends null when its configuration names no flavor',
    }),
  ),
});
export const UpdateLoadBalancer = Body('UpdateLoadBalancer', [exampleUpdate], {
  ...updates,
  admin_state_up: Type.Optional(
    Type.Boolean({ description: 'Whether the listeners accept connections; false: the load balancer is off' }),
  ),
});
export type UpdateLoadBalancer = Static<typeof UpdateLoadBalancer>;

export const ResizeLoadBalancer = Body('ResizeLoadBalancer', [{ flavor: 'lb1-2-4' }], {
  flavor: Described(FlavorName, 'New flavor; flavors differ in price only'),
});

export const FailoverLoadBalancer = Body('FailoverLoadBalancer', [{ force: false }], {
  force: Type.Optional(Type.Boolean({ default: false, description: 'Accepted and ignored' })),
});

const ignored = 'Accepted and ignored';

export const CheckLoadBalancerLimits = Body('CheckLoadBalancerLimits', [{ floating_ip: { source: 'new' } }], {
  floating_ip: Type.Optional(
    Input(
      'CheckLoadBalancerLimitsFloatingIp',
      {
        source: Type.Enum(['existing', 'new'], { description: '`new` counts as another floating IP' }),
        existing_floating_id: Type.Optional(Described(Uuid, ignored)),
      },
      'Floating IP of the planned load balancer',
    ),
  ),
  logging: Type.Optional(Described(LoggingInput, ignored)),
  vip_ip_family: Type.Optional(Described(VipFamily, ignored)),
  vip_network_id: Type.Optional(Described(Uuid, ignored)),
  vip_port_id: Type.Optional(Described(Uuid, ignored)),
});
export type CheckLoadBalancerLimits = Static<typeof CheckLoadBalancerLimits>;

const WithDdos = Type.Optional(Type.Boolean({ default: false, description: ignored }));

export const ListLoadBalancers = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  assigned_floating: Type.Optional(
    Type.Boolean({ description: '`true`: only load balancers with a floating IP, which none has' }),
  ),
  logging_enabled: Type.Optional(
    Type.Boolean({ description: 'Only load balancers whose `logging.enabled` has this value' }),
  ),
  name: Type.Optional(Described(ShortText, 'Only load balancers whose name contains this text')),
  order_by: OrderBy(
    [
      'created_at',
      'flavor',
      'name',
      'operating_status',
      'provisioning_status',
      'updated_at',
      'vip_address',
      'vip_ip_family',
    ],
    'created_at.desc',
  ),
  operating_status: Type.Optional(
    Described(statuses.operating_status, 'Only load balancers with this operating status'),
  ),
  provisioning_status: Type.Optional(
    Described(statuses.provisioning_status, 'Only load balancers with this provisioning status'),
  ),
  show_stats: ShowStats,
  with_ddos: WithDdos,
});
export type ListLoadBalancers = Static<typeof ListLoadBalancers>;
export const GetLoadBalancer = Type.Object({
  show_stats: ShowStats,
  with_ddos: WithDdos,
  loadbalancer_id: Type.Optional(
    Described(ShortText, 'Accepted and ignored: the Ansible collection repeats the ID of the path'),
  ),
});

const IpAndSubnet = {
  ip_address: Type.String({ description: 'IP address' }),
  subnet_id: Described(Uuid, 'ID of the subnet'),
};

const LoadBalancerFlavor = Component('LoadBalancerFlavorDetails', {
  flavor_id: Type.String({ description: 'ID of the flavor, equal to its name' }),
  flavor_name: Type.String({ description: 'Name of the flavor' }),
  ram: Type.Integer({ description: 'Nominal memory in MiB' }),
  vcpus: Type.Integer({ description: 'Nominal number of virtual processors' }),
});

const LoadBalancerLogging = Component('LoadBalancerLogging', {
  destination_region_id: OrNull.integer(logging.destination_region_id),
  enabled: Type.Boolean({ description: logging.enabled }),
  retention_policy: Described(
    Nullable(Component('LoadBalancerLogRetention', { period: OrNull.integer(logging.period) })),
    logging.retention_policy,
  ),
  topic_name: OrNull.text(logging.topic_name),
});

export const LoadBalancer = Component('LoadBalancer', {
  id: Described(Uuid, 'ID of the load balancer'),
  ...statuses,
  ...PlaceFields,
  ...TaskFields,
  name: Type.String({ description: 'Name of the load balancer' }),
  additional_vips: Type.Array(Type.Object(IpAndSubnet), {
    description: 'Further addresses: the IPv6 address of a load balancer of the family `dual`',
  }),
  admin_state_up: Type.Boolean({ description: 'Whether the listeners accept connections' }),
  created_at: Described(DateTime, 'When the load balancer was requested'),
  ddos_profile: Type.Null({ description: 'Always null' }),
  flavor: Described(Nullable(LoadBalancerFlavor), 'Flavor; null if the region has removed it'),
  floating_ips: Type.Array(Type.Object({}), { maxItems: 0, description: 'Always empty' }),
  listeners: Type.Array(Component('ListenerReference', { id: Described(Uuid, 'ID of the listener') }), {
    description: 'Listeners, the oldest first',
  }),
  logging: Described(Nullable(LoadBalancerLogging), noLogs),
  metadata: Type.Array(Tag, {
    deprecated: true,
    description: 'Use `tags_v2`; the Terraform provider reads this name',
  }),
  preferred_connectivity: MemberConnectivity,
  stats: StatsOrNull,
  tags_v2: Type.Array(Tag, { description: 'Tags, by key' }),
  updated_at: Described(Nullable(DateTime), 'When the load balancer or one of its parts was last changed'),
  vip_address: OrNull.text('IP address of the load balancer'),
  vip_fqdn: Type.Null({ description: 'Always null' }),
  vip_ip_family: Nullable(VipFamily),
  vip_port_id: Described(Nullable(Uuid), 'ID of the address'),
  vrrp_ips: Type.Array(
    Type.Object({
      ...IpAndSubnet,
      role: Type.Enum(['BACKUP', 'MASTER', 'STANDALONE'], {
        description: '`STANDALONE` in a region of one host; otherwise `MASTER` for the host that has the address',
      }),
    }),
    {
      description:
        'Addresses of the instances: in a region of one host the address of the load balancer, otherwise its hosts',
    },
  ),
});
export type LoadBalancer = Static<typeof LoadBalancer>;
export const LoadBalancerCollection = Collection(LoadBalancer);

export const LoadBalancerRequiredQuota = RequiredQuota('LoadBalancerRequiredQuota', {
  loadbalancer_count_limit: 'Limit of the number of load balancers',
  loadbalancer_count_requested: 'Number of load balancers requested',
  loadbalancer_count_usage: 'Number of load balancers in use',
  floating_count_limit: 'Limit of the number of floating IPs',
  floating_count_requested: 'Number of floating IPs requested',
  floating_count_usage: 'Number of floating IPs in use',
});
export type LoadBalancerRequiredQuota = Static<typeof LoadBalancerRequiredQuota>;
