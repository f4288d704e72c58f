/** SQL of counters: readings of listeners, added up over the processes of the proxy and by minute. */
import { type Db, prepared, preparedValue } from '../../../platform/db.ts';
import { writeRows } from '../../store-kit.ts';
import type { Stats } from '../shapes.ts';

interface Counters {
  requests: number;
  bytesIn: number;
  bytesOut: number;
  requestErrors: number;
  serverErrors: number;
}

/** Counters of a listener since the start of the proxy process. */
interface Reading extends Counters {
  listenerId: string;
  activeConnections: number;
  totalConnections: number;
}

/** Adds a row to the minute of the same load balancer or listener. */
const addToMinute = (key: string) => `on conflict (${key}, minute) do update set
     bytes_in = t.bytes_in + excluded.bytes_in, bytes_out = t.bytes_out + excluded.bytes_out,
     requests = t.requests + excluded.requests, connections = t.connections + excluded.connections,
     open_connections = greatest(t.open_connections, excluded.open_connections),
     request_errors = t.request_errors + excluded.request_errors,
     server_errors = t.server_errors + excluded.server_errors`;
const minuteColumns =
  'minute, bytes_in, bytes_out, requests, connections, open_connections, request_errors, server_errors';

/**
 * Adds the traffic since the last readings to the current minute.
 *
 * A counter below the last reading means a new process, so the whole values are added. Fewer server errors do not: those of a
 * TCP listener are counted by its pool, which may change. The rows of the listeners are locked, so that no counters are
 * written for a listener that is being removed.
 */
export const addReadings = writeRows<Reading, [now: Date]>(
  'traffic_add',
  [
    ...(['listenerId', 'activeConnections', 'totalConnections', 'requests', 'bytesIn', 'bytesOut'] as const),
    ...(['requestErrors', 'serverErrors'] as const),
  ],
  `with reading as (
     select r.*, l.load_balancer_id, c.seen_total_connections, c.seen_bytes_in, c.seen_bytes_out, c.seen_request_errors,
       coalesce(c.seen_requests, r.requests) as seen_requests,
       coalesce(c.seen_server_errors, r.server_errors) as seen_server_errors,
       coalesce(r.total < c.seen_total_connections or r.bytes_in < c.seen_bytes_in or r.bytes_out < c.seen_bytes_out
         or r.errors < c.seen_request_errors or r.requests < coalesce(c.seen_requests, 0), true) as restarted
     from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
       as r (listener_id, active, total, requests, bytes_in, bytes_out, errors, server_errors)
     join lb_listeners l on l.id = r.listener_id
     left join lb_listener_counters c on c.listener_id = r.listener_id
     order by l.id for key share of l),
   added as (
     select listener_id, load_balancer_id, active, total, requests, bytes_in, bytes_out, errors, server_errors,
       total - case when restarted then 0 else seen_total_connections end as added_total,
       requests - case when restarted then 0 else seen_requests end as added_requests,
       bytes_in - case when restarted then 0 else seen_bytes_in end as added_in,
       bytes_out - case when restarted then 0 else seen_bytes_out end as added_out,
       errors - case when restarted then 0 else seen_request_errors end as added_errors,
       server_errors - case when restarted or server_errors < seen_server_errors then 0 else seen_server_errors end
         as added_server_errors
     from reading),
   counted as (
     insert into lb_listener_counters as c (listener_id, active_connections, total_connections, bytes_in, bytes_out,
       request_errors, seen_total_connections, seen_requests, seen_bytes_in, seen_bytes_out, seen_request_errors,
       seen_server_errors)
     select listener_id, active, added_total, added_in, added_out, added_errors, total, requests, bytes_in, bytes_out,
       errors, server_errors
     from added
     on conflict (listener_id) do update set
       active_connections = excluded.active_connections,
       total_connections = c.total_connections + excluded.total_connections,
       bytes_in = c.bytes_in + excluded.bytes_in,
       bytes_out = c.bytes_out + excluded.bytes_out,
       request_errors = c.request_errors + excluded.request_errors,
       seen_total_connections = excluded.seen_total_connections,
       seen_requests = excluded.seen_requests,
       seen_bytes_in = excluded.seen_bytes_in,
       seen_bytes_out = excluded.seen_bytes_out,
       seen_request_errors = excluded.seen_request_errors,
       seen_server_errors = excluded.seen_server_errors),
   busy as (
     select * from added
     where active + added_total + added_requests + added_in + added_out + added_errors + added_server_errors > 0),
   of_listeners as (
     insert into lb_listener_traffic as t (listener_id, ${minuteColumns})
     select listener_id, date_trunc('minute', $9::timestamptz), added_in, added_out, added_requests, added_total, active,
       added_errors, added_server_errors
     from busy order by listener_id ${addToMinute('listener_id')})
   insert into load_balancer_traffic as t (load_balancer_id, ${minuteColumns})
   select load_balancer_id, date_trunc('minute', $9::timestamptz), sum(added_in), sum(added_out), sum(added_requests),
     sum(added_total), sum(active), sum(added_errors), sum(added_server_errors)
   from busy group by load_balancer_id order by load_balancer_id ${addToMinute('load_balancer_id')}`,
);

const readStats = prepared<Stats & { listener_id: string }>(
  'traffic_stats',
  `select l.id as listener_id, coalesce(c.active_connections, 0) as active_connections,
     coalesce(c.total_connections, 0) as total_connections, coalesce(c.bytes_in, 0) as bytes_in,
     coalesce(c.bytes_out, 0) as bytes_out, coalesce(c.request_errors, 0) as request_errors
   from lb_listeners l left join lb_listener_counters c on c.listener_id = l.id where l.id = any($1::uuid[])`,
);

/** By listener id. */
export async function statsOfListeners(db: Db, ids: string[]): Promise<Map<string, Stats>> {
  const rows = await readStats(db, ids);
  return new Map(rows.map(({ listener_id, ...stats }) => [listener_id, stats]));
}

export interface Traffic extends Counters {
  /** The start of the step, in milliseconds since 1970. */
  at: number;
  connections: number;
  openConnections: number;
}

const readFrom = (table: string, key: string) =>
  prepared<Traffic>(
    `${table}_read`,
    `select (floor(extract(epoch from minute) / $4) * $4 * 1000)::bigint as at, sum(requests)::bigint as requests,
       sum(connections)::bigint as connections, max(open_connections) as "openConnections",
       sum(bytes_in)::bigint as "bytesIn", sum(bytes_out)::bigint as "bytesOut",
       sum(request_errors)::bigint as "requestErrors", sum(server_errors)::bigint as "serverErrors"
     from ${table} where ${key} = $1 and minute >= $2 and minute < $3 group by 1`,
  );

/** Traffic by step, from `from` up to but not including `to`. Steps without traffic are omitted. */
export type ReadTraffic = (db: Db, id: string, from: Date, to: Date, stepSeconds: number) => Promise<Traffic[]>;
export const trafficOfLoadBalancer: ReadTraffic = readFrom('load_balancer_traffic', 'load_balancer_id');
export const trafficOfListener: ReadTraffic = readFrom('lb_listener_traffic', 'listener_id');

const readCreation = preparedValue<Date | undefined>(
  'traffic_listener',
  'select created_at from lb_listeners where id = $1 and load_balancer_id = $2',
);

/** The creation of a listener; null if the load balancer has no such listener. */
export async function listenerCreatedAt(db: Db, loadBalancerId: string, id: string): Promise<Date | null> {
  return (await readCreation(db, id, loadBalancerId)) ?? null;
}

/** How long traffic is kept. */
export const historyMs = 7 * 24 * 3600 * 1000;

const removeBefore = prepared(
  'traffic_remove_old',
  `with removed as (delete from lb_listener_traffic where minute < $1)
   delete from load_balancer_traffic where minute < $1`,
);

/** Removes traffic older than the history. */
export async function removeOld(db: Db, now: Date): Promise<void> {
  await removeBefore(db, new Date(now.getTime() - historyMs));
}
