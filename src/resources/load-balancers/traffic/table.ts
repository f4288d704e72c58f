import { bigint, index, pgTable, primaryKey, uuid } from 'drizzle-orm/pg-core';
import { instant, parentUuid } from '../../../platform/columns.ts';
import { lbListeners, loadBalancers } from '../table.ts';

const counter = (name: string) => bigint(name, { mode: 'number' }).notNull();

/**
 * Counters of a listener since its creation. Every proxy process counts from zero, so the row also has the last reading:
 * the next reading minus this one is added to the totals.
 */
export const lbListenerCounters = pgTable('lb_listener_counters', {
  listenerId: uuid('listener_id')
    .primaryKey()
    .references(() => lbListeners.id, { onDelete: 'cascade' }),
  /** At the last reading. */
  activeConnections: counter('active_connections'),
  totalConnections: counter('total_connections'),
  bytesIn: counter('bytes_in'),
  bytesOut: counter('bytes_out'),
  requestErrors: counter('request_errors'),
  seenTotalConnections: counter('seen_total_connections'),
  seenBytesIn: counter('seen_bytes_in'),
  seenBytesOut: counter('seen_bytes_out'),
  seenRequestErrors: counter('seen_request_errors'),
  /** Null: not read yet. */
  seenRequests: bigint('seen_requests', { mode: 'number' }),
  seenServerErrors: bigint('seen_server_errors', { mode: 'number' }),
});

const trafficOfMinute = {
  minute: instant('minute').notNull(),
  bytesIn: counter('bytes_in'),
  bytesOut: counter('bytes_out'),
  requests: counter('requests').default(0),
  /** New connections. */
  connections: counter('connections').default(0),
  /** The highest number of open connections among the readings. */
  openConnections: counter('open_connections').default(0),
  requestErrors: counter('request_errors').default(0),
  serverErrors: counter('server_errors').default(0),
};

/** Traffic per load balancer and minute, kept for a week. Minutes without traffic have no row. */
export const loadBalancerTraffic = pgTable(
  'load_balancer_traffic',
  {
    loadBalancerId: parentUuid('load_balancer_id', () => loadBalancers.id),
    ...trafficOfMinute,
  },
  (t) => [primaryKey({ columns: [t.loadBalancerId, t.minute] }), index('load_balancer_traffic_minute').on(t.minute)],
);

/** The same per listener. The traffic of a load balancer outlives its listeners, so it is not their sum. */
export const lbListenerTraffic = pgTable(
  'lb_listener_traffic',
  {
    listenerId: parentUuid('listener_id', () => lbListeners.id),
    ...trafficOfMinute,
  },
  (t) => [primaryKey({ columns: [t.listenerId, t.minute] }), index('lb_listener_traffic_minute').on(t.minute)],
);
