import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { networks } from '../networks/table.ts';
import { subnets } from '../subnets/table.ts';
import type { OperatingStatus, ProvisioningStatus } from './pools/schema.ts';
import type { Logging, MemberConnectivity, VipFamily } from './schema.ts';

/**
 * One row a load balancer, from its acceptance until its deletion was observed. Its listeners and pools are parts of it:
 * they share its generation, its lock and its job, because one host configuration serves them all.
 */
export const loadBalancers = pgTable(
  'load_balancers',
  {
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    flavor: text('flavor').notNull(),
    tags: jsonb('tags').notNull().$type<Tags>(),
    adminStateUp: boolean('admin_state_up').notNull(),
    preferredConnectivity: text('preferred_connectivity').notNull().$type<MemberConnectivity>(),
    logging: jsonb('logging').$type<Logging>(),
    vipIpFamily: text('vip_ip_family').notNull().$type<VipFamily>(),
    vipAddress: text('vip_address').notNull(),
    vipPortId: uuid('vip_port_id').notNull(),
    vipNetworkId: uuid('vip_network_id')
      .notNull()
      .references(() => networks.id),
    vipSubnetId: uuid('vip_subnet_id')
      .notNull()
      .references(() => subnets.id),
    provisioningStatus: text('provisioning_status').notNull().$type<ProvisioningStatus>(),
    operatingStatus: text('operating_status').notNull().$type<OperatingStatus>(),
    creatorTaskId: uuid('creator_task_id').notNull(),
    /** Grows with every change of the load balancer, a listener, a pool or a member. */
    generation: bigint('generation', { mode: 'number' }).notNull(),
    /** The generation that the host was last seen to have, or to have failed at for good. */
    observedGeneration: bigint('observed_generation', { mode: 'number' }).notNull(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('load_balancers_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('load_balancers_network').on(t.vipNetworkId),
    index('load_balancers_subnet').on(t.vipSubnetId),
    uniqueIndex('load_balancers_vip').on(t.regionId, t.vipAddress),
    index('load_balancers_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);
