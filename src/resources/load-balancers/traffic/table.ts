import { bigint, index, pgTable, primaryKey, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../../platform/columns.ts';
import { lbListeners } from '../listeners/table.ts';
import { loadBalancers } from '../table.ts';

const counter = (name: string) => bigint(name, { mode: 'number' }).notNull();

/**
 * What went through a listener since it was made. The proxy counts from zero with each of its processes, so beside the
 * totals stands what it last said: the difference to what it says next is what has come.
 */
export const lbListenerCounters = pgTable('lb_listener_counters', {
  listenerId: uuid('listener_id')
    .primaryKey()
    .references(() => lbListeners.id, { onDelete: 'cascade' }),
  /** At the last look. */
  activeConnections: counter('active_connections'),
  totalConnections: counter('total_connections'),
  bytesIn: counter('bytes_in'),
  bytesOut: counter('bytes_out'),
  requestErrors: counter('request_errors'),
  seenTotalConnections: counter('seen_total_connections'),
  seenBytesIn: counter('seen_bytes_in'),
  seenBytesOut: counter('seen_bytes_out'),
  seenRequestErrors: counter('seen_request_errors'),
});

/** Bytes through a load balancer by the minute; a minute without traffic has no row. Kept for a week. */
export const loadBalancerTraffic = pgTable(
  'load_balancer_traffic',
  {
    loadBalancerId: uuid('load_balancer_id')
      .notNull()
      .references(() => loadBalancers.id, { onDelete: 'cascade' }),
    minute: instant('minute').notNull(),
    bytesIn: counter('bytes_in'),
    bytesOut: counter('bytes_out'),
  },
  (t) => [primaryKey({ columns: [t.loadBalancerId, t.minute] }), index('load_balancer_traffic_minute').on(t.minute)],
);
