import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import type {
  L7Action,
  L7CompareType,
  L7RuleType,
  LbAlgorithm,
  ListenerProtocol,
  PoolProtocol,
} from '../../drivers/load-balancer.ts';
import { instant, owned, parentUuid, reconciled, referencedUuid } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { networks } from '../networks/table.ts';
import { subnets } from '../subnets/table.ts';
import type { UserListItem } from './listeners/schema.ts';
import type { HealthMonitor, SessionPersistence } from './pools/schema.ts';
import type { Logging, MemberConnectivity, VipFamily } from './schema.ts';
import type { OperatingStatus, ProvisioningStatus } from './shapes.ts';

export type LoadBalancerRow = typeof loadBalancers.$inferSelect;
export type ListenerRow = typeof lbListeners.$inferSelect;
export type PoolRow = typeof lbPools.$inferSelect;
export type MemberRow = typeof lbMembers.$inferSelect;
export type L7PolicyRow = typeof lbL7Policies.$inferSelect;
export type L7RuleRow = typeof lbL7Rules.$inferSelect;

/**
 * A row exists from the accepted create until the deletion was observed. Listeners, pools, members, L7 policies and rules
 * share the generation, the lock and the job of their load balancer, because one host configuration serves them all.
 */
export const loadBalancers = pgTable(
  'load_balancers',
  {
    id: uuid('id').primaryKey(),
    ...owned,
    flavor: text('flavor').notNull(),
    tags: jsonb('tags').notNull().$type<Tags>(),
    adminStateUp: boolean('admin_state_up').notNull(),
    preferredConnectivity: text('preferred_connectivity').notNull().$type<MemberConnectivity>(),
    logging: jsonb('logging').$type<Logging>(),
    vipIpFamily: text('vip_ip_family').notNull().$type<VipFamily>(),
    /** The IPv4 address, or the IPv6 address if it has no other. */
    vipAddress: text('vip_address').notNull(),
    /** Of the families `ipv6` and `dual`. */
    vipAddressV6: text('vip_address_v6'),
    vipPortId: uuid('vip_port_id').notNull(),
    vipNetworkId: referencedUuid('vip_network_id', () => networks.id),
    vipSubnetId: referencedUuid('vip_subnet_id', () => subnets.id),
    provisioningStatus: text('provisioning_status').notNull().$type<ProvisioningStatus>(),
    operatingStatus: text('operating_status').notNull().$type<OperatingStatus>(),
    ...reconciled,
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('load_balancers_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('load_balancers_network').on(t.vipNetworkId),
    index('load_balancers_subnet').on(t.vipSubnetId),
    uniqueIndex('load_balancers_vip').on(t.regionId, t.vipAddress),
    uniqueIndex('load_balancers_vip_v6').on(t.regionId, t.vipAddressV6),
    index('load_balancers_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);

// Listeners and pools have these columns in common.
const place = {
  id: uuid('id').primaryKey(),
  loadBalancerId: parentUuid('load_balancer_id', () => loadBalancers.id),
  projectId: integer('project_id').notNull(),
  regionId: integer('region_id').notNull(),
  name: text('name').notNull(),
};
const timeouts = {
  timeoutClientData: integer('timeout_client_data'),
  timeoutMemberConnect: integer('timeout_member_connect'),
  timeoutMemberData: integer('timeout_member_data'),
};
const state = {
  provisioningStatus: text('provisioning_status').notNull().$type<ProvisioningStatus>(),
  operatingStatus: text('operating_status').notNull().$type<OperatingStatus>(),
  creatorTaskId: uuid('creator_task_id').notNull(),
  createdAt: instant('created_at').notNull(),
  /** The row is removed when the host has been seen without it. */
  deletedAt: instant('deleted_at'),
};

/** Columns of listeners, pools, L7 policies and rules that no client decides. */
export type PartColumn = Exclude<keyof typeof place | keyof typeof state, 'name'>;

export const lbPools = pgTable(
  'lb_pools',
  {
    ...place,
    protocol: text('protocol').notNull().$type<PoolProtocol>(),
    lbAlgorithm: text('lb_algorithm').notNull().$type<LbAlgorithm>(),
    adminStateUp: boolean('admin_state_up').notNull(),
    caSecretId: uuid('ca_secret_id'),
    crlSecretId: uuid('crl_secret_id'),
    secretId: uuid('secret_id'),
    healthMonitor: jsonb('health_monitor').$type<HealthMonitor>(),
    sessionPersistence: jsonb('session_persistence').$type<SessionPersistence>(),
    ...timeouts,
    ...state,
  },
  (t) => [
    index('lb_pools_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('lb_pools_load_balancer').on(t.loadBalancerId),
  ],
);

export const lbListeners = pgTable(
  'lb_listeners',
  {
    ...place,
    protocol: text('protocol').notNull().$type<ListenerProtocol>(),
    protocolPort: integer('protocol_port').notNull(),
    connectionLimit: integer('connection_limit').notNull(),
    allowedCidrs: jsonb('allowed_cidrs').$type<string[]>(),
    insertXForwarded: boolean('insert_x_forwarded').notNull(),
    secretId: uuid('secret_id'),
    sniSecretIds: uuid('sni_secret_ids').array().notNull(),
    userList: jsonb('user_list').notNull().$type<UserListItem[]>(),
    ...timeouts,
    defaultPoolId: uuid('default_pool_id').references(() => lbPools.id, { onDelete: 'set null' }),
    adminStateUp: boolean('admin_state_up').notNull(),
    ...state,
  },
  (t) => [
    index('lb_listeners_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('lb_listeners_pool').on(t.defaultPoolId),
    // UDP ports are separate from TCP ports.
    uniqueIndex('lb_listeners_port').on(t.loadBalancerId, t.protocolPort, sql`(${t.protocol} = 'UDP')`),
  ],
);

/** The address and port identify a member within its pool. */
export const lbMembers = pgTable(
  'lb_members',
  {
    id: uuid('id').primaryKey(),
    poolId: parentUuid('pool_id', () => lbPools.id),
    /** Its position in the list that the client sent. */
    position: integer('position').notNull(),
    address: text('address').notNull(),
    protocolPort: integer('protocol_port').notNull(),
    weight: integer('weight').notNull(),
    backup: boolean('backup').notNull(),
    adminStateUp: boolean('admin_state_up').notNull(),
    monitorAddress: text('monitor_address'),
    monitorPort: integer('monitor_port'),
    subnetId: uuid('subnet_id'),
    instanceId: uuid('instance_id'),
    operatingStatus: text('operating_status').notNull().$type<OperatingStatus>(),
  },
  (t) => [uniqueIndex('lb_members_endpoint').on(t.poolId, t.address, t.protocolPort)],
);

export const lbL7Policies = pgTable(
  'lb_l7_policies',
  {
    ...place,
    listenerId: parentUuid('listener_id', () => lbListeners.id),
    /** 1 to the number of policies of the listener that are not being deleted, without gaps. */
    position: integer('position').notNull(),
    action: text('action').notNull().$type<L7Action>(),
    redirectUrl: text('redirect_url'),
    redirectPrefix: text('redirect_prefix'),
    redirectPoolId: uuid('redirect_pool_id').references(() => lbPools.id, { onDelete: 'cascade' }),
    redirectHttpCode: integer('redirect_http_code'),
    tags: text('tags').array().notNull(),
    provisioningStatus: state.provisioningStatus,
    createdAt: state.createdAt,
    deletedAt: state.deletedAt,
  },
  (t) => [
    index('lb_l7_policies_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('lb_l7_policies_load_balancer').on(t.loadBalancerId),
    index('lb_l7_policies_listener').on(t.listenerId, t.position),
    index('lb_l7_policies_pool').on(t.redirectPoolId),
  ],
);

export const lbL7Rules = pgTable(
  'lb_l7_rules',
  {
    id: place.id,
    loadBalancerId: place.loadBalancerId,
    projectId: place.projectId,
    regionId: place.regionId,
    policyId: parentUuid('policy_id', () => lbL7Policies.id),
    type: text('type').notNull().$type<L7RuleType>(),
    compareType: text('compare_type').notNull().$type<L7CompareType>(),
    /** The header, cookie or field of a distinguished name. */
    key: text('key'),
    value: text('value').notNull(),
    invert: boolean('invert').notNull(),
    tags: text('tags').array().notNull(),
    provisioningStatus: state.provisioningStatus,
    createdAt: state.createdAt,
    deletedAt: state.deletedAt,
  },
  (t) => [
    index('lb_l7_rules_load_balancer').on(t.loadBalancerId),
    index('lb_l7_rules_policy').on(t.policyId, t.createdAt, t.id),
  ],
);
