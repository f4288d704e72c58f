import { boolean, cidr, index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { instant, referencedUuid } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { networks } from '../networks/table.ts';

/** Subnets are records of the control plane: no addresses are assigned. */
export const subnets = pgTable(
  'subnets',
  {
    id: uuid('id').primaryKey(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    networkId: referencedUuid('network_id', () => networks.id),
    name: text('name').notNull(),
    /** A native type, which has overlap operators and sorts by address. */
    cidr: cidr('cidr').notNull(),
    ipVersion: integer('ip_version').notNull().$type<4 | 6>(),
    /** This and the addresses below are stored as the client wrote them. */
    gatewayIp: text('gateway_ip'),
    enableDhcp: boolean('enable_dhcp').notNull(),
    dnsNameservers: jsonb('dns_nameservers').notNull().$type<string[]>(),
    hostRoutes: jsonb('host_routes').notNull().$type<{ destination: string; nexthop: string }[]>(),
    tags: jsonb('tags').notNull().$type<Tags>(),
    creatorTaskId: uuid('creator_task_id'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (t) => [
    index('subnets_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('subnets_network').on(t.networkId, t.createdAt),
  ],
);
