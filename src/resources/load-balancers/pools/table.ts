import { boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../../platform/columns.ts';
import type { LbAlgorithm, PoolProtocol } from '../../../drivers/load-balancer.ts';
import { loadBalancers } from '../table.ts';
import type { HealthMonitor, OperatingStatus, ProvisioningStatus, SessionPersistence } from './schema.ts';

export const lbPools = pgTable(
  'lb_pools',
  {
    id: uuid('id').primaryKey(),
    loadBalancerId: uuid('load_balancer_id')
      .notNull()
      .references(() => loadBalancers.id, { onDelete: 'cascade' }),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    protocol: text('protocol').notNull().$type<PoolProtocol>(),
    lbAlgorithm: text('lb_algorithm').notNull().$type<LbAlgorithm>(),
    adminStateUp: boolean('admin_state_up').notNull(),
    caSecretId: uuid('ca_secret_id'),
    crlSecretId: uuid('crl_secret_id'),
    secretId: uuid('secret_id'),
    /** Both are read and written whole. */
    healthMonitor: jsonb('health_monitor').$type<HealthMonitor>(),
    sessionPersistence: jsonb('session_persistence').$type<SessionPersistence>(),
    timeoutClientData: integer('timeout_client_data'),
    timeoutMemberConnect: integer('timeout_member_connect'),
    timeoutMemberData: integer('timeout_member_data'),
    provisioningStatus: text('provisioning_status').notNull().$type<ProvisioningStatus>(),
    operatingStatus: text('operating_status').notNull().$type<OperatingStatus>(),
    creatorTaskId: uuid('creator_task_id').notNull(),
    createdAt: instant('created_at').notNull(),
    /** Gone from the host with the next observed generation. */
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('lb_pools_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('lb_pools_load_balancer').on(t.loadBalancerId),
  ],
);

/** A member is the same member as long as its address and port are. */
export const lbMembers = pgTable(
  'lb_members',
  {
    id: uuid('id').primaryKey(),
    poolId: uuid('pool_id')
      .notNull()
      .references(() => lbPools.id, { onDelete: 'cascade' }),
    /** Its place in the sequence that the client gave. */
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
