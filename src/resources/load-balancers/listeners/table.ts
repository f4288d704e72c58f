import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../../platform/columns.ts';
import type { ListenerProtocol } from '../../../drivers/load-balancer.ts';
import { loadBalancers } from '../table.ts';
import { lbPools } from '../pools/table.ts';
import type { OperatingStatus, ProvisioningStatus } from '../pools/schema.ts';
import type { UserListItem } from './schema.ts';

export const lbListeners = pgTable(
  'lb_listeners',
  {
    id: uuid('id').primaryKey(),
    loadBalancerId: uuid('load_balancer_id')
      .notNull()
      .references(() => loadBalancers.id, { onDelete: 'cascade' }),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    protocol: text('protocol').notNull().$type<ListenerProtocol>(),
    protocolPort: integer('protocol_port').notNull(),
    /** -1: no limit. */
    connectionLimit: integer('connection_limit').notNull(),
    allowedCidrs: jsonb('allowed_cidrs').$type<string[]>(),
    insertXForwarded: boolean('insert_x_forwarded').notNull(),
    secretId: uuid('secret_id'),
    sniSecretIds: uuid('sni_secret_ids').array().notNull(),
    userList: jsonb('user_list').notNull().$type<UserListItem[]>(),
    timeoutClientData: integer('timeout_client_data'),
    timeoutMemberConnect: integer('timeout_member_connect'),
    timeoutMemberData: integer('timeout_member_data'),
    defaultPoolId: uuid('default_pool_id').references(() => lbPools.id, { onDelete: 'set null' }),
    adminStateUp: boolean('admin_state_up').notNull(),
    provisioningStatus: text('provisioning_status').notNull().$type<ProvisioningStatus>(),
    operatingStatus: text('operating_status').notNull().$type<OperatingStatus>(),
    creatorTaskId: uuid('creator_task_id').notNull(),
    createdAt: instant('created_at').notNull(),
    /** Gone from the host with the next observed generation. */
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('lb_listeners_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('lb_listeners_pool').on(t.defaultPoolId),
    // One listener a port and transport: a UDP listener may stand beside a TCP one.
    uniqueIndex('lb_listeners_port').on(t.loadBalancerId, t.protocolPort, sql`(${t.protocol} = 'UDP')`),
  ],
);
