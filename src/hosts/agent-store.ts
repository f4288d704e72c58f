/**
 * The SQL of an agent: its lease, published states, observations and readings.
 *
 * Invariant: every write names the incarnation, so an agent that lost its lease, or that runs twice, writes nothing.
 */
import type pg from 'pg';
import { columnsOf, type Db, prepared, preparedExists, transaction, type Tx } from '../platform/db.ts';
import type { HostState } from './part.ts';
import { type Key, observedChannel, publishedChannel, revisionName, stopMarginSeconds } from './store.ts';
import type { HostReport, ObservedError } from './table.ts';

/** An agent of a host. */
export interface Incarnation {
  regionId: number;
  name: string;
  incarnation: string;
}

interface HostPlace {
  address: string;
  interface: string | null;
}

/**
 * A predecessor that ended in order has no incarnation. If it left its lease and that is still valid, the host still
 * serves. Otherwise, or if the address shows another machine, the lease must have ended for longer than the host may have
 * served.
 */
const acquireText = `
  insert into hosts as h (region_id, name, address, interface, incarnation, lease_until, report, joined_at, started_at)
  values ($1, $2, $4, $5, $3, clock_timestamp() + $6 * interval '1 second', $7, clock_timestamp(), clock_timestamp())
  on conflict (region_id, name) do update set address = excluded.address, interface = excluded.interface,
    incarnation = excluded.incarnation, lease_until = excluded.lease_until, report = excluded.report,
    started_at = excluded.started_at,
    converged = h.converged and h.incarnation is null and h.lease_until > clock_timestamp()
  where h.incarnation is null and h.address = excluded.address
    or h.lease_until + interval '${stopMarginSeconds} seconds' < clock_timestamp()
  returning state, converged`;

export interface Acquired {
  state: HostState;
  /** Whether it still serves what its predecessor served. */
  converged: boolean;
}

/**
 * Takes the lease; null: another agent of this name has it. The name of another host: it has this address, also if it does not
 * serve, because it may return.
 */
export async function acquireLease(
  pool: pg.Pool,
  { regionId, name, incarnation }: Incarnation,
  { address, interface: device }: HostPlace,
  leaseSeconds: number,
  report: HostReport,
): Promise<Acquired | string | null> {
  const values = [regionId, name, incarnation, address, device, leaseSeconds, JSON.stringify(report)];
  return inTransaction(pool, async (client) => {
    // Of agents that start together with one address, the second waits and sees the first.
    await client.query(`select pg_advisory_xact_lock(hashtext('hosts'), $1::int)`, [regionId]);
    const others = await client.query<{ name: string }>(
      'select name from hosts where region_id = $1 and name <> $2 and address = $3 limit 1',
      [regionId, name, address],
    );
    if (others.rows[0]) return others.rows[0].name;
    return (await client.query<Acquired>(acquireText, values)).rows[0] ?? null;
  });
}

async function inTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    client.release();
    return result;
  } catch (error) {
    // Closes the connection, which also ends the transaction.
    client.release(true);
    throw error;
  }
}

const ownRow = 'region_id = $1 and name = $2 and incarnation = $3';
const validRow = `${ownRow} and lease_until > clock_timestamp()`;

const renewText = `
  update hosts set lease_until = clock_timestamp() + $4 * interval '1 second', report = $5 where ${validRow}
  returning state, (select value from revisions where name = $6) as revision`;

export interface Renewed {
  state: HostState;
  /** The last published revision. */
  revision: number;
}

/** Null: the lease has ended, or belongs to another agent. */
export async function renewLease(
  pool: pg.Pool,
  { regionId, name, incarnation }: Incarnation,
  leaseSeconds: number,
  report: HostReport,
): Promise<Renewed | null> {
  const values = [regionId, name, incarnation, leaseSeconds, JSON.stringify(report), revisionName(regionId)];
  const { rows } = await pool.query<{ state: HostState; revision: number | null }>(renewText, values);
  return rows[0] ? { state: rows[0].state, revision: rows[0].revision ?? 0 } : null;
}

/** Ends the lease of a host that serves nothing any more: nobody waits for it. */
export async function endLease(pool: pg.Pool, { regionId, name, incarnation }: Incarnation): Promise<void> {
  await pool.query(
    `with ended as (
       update hosts set incarnation = null, converged = false, lease_until = least(lease_until, clock_timestamp())
       where ${ownRow} returning region_id)
     select pg_notify($4, ''), pg_notify($5, 'hosts') from ended`,
    [regionId, name, incarnation, observedChannel(regionId), publishedChannel(regionId)],
  );
}

/** Leaves the lease, which does not end before its time, to the next agent of this host. */
export async function leaveLease(pool: pg.Pool, { regionId, name, incarnation }: Incarnation): Promise<void> {
  await pool.query(`update hosts set incarnation = null where ${ownRow}`, [regionId, name, incarnation]);
}

export interface PublishedState extends Key {
  revision: number;
  /** Encrypted; null: removed. */
  state: Buffer | null;
}

const readSince = prepared<PublishedState, [regionId: number, after: number, limit: number]>(
  'hosts_published_since',
  `select kind, id, revision, state from published_states where region_id = $1 and revision > $2
   order by revision limit $3`,
);

const batchSize = 500;

/** The states that were published after a revision, in the order of their revisions. */
export async function* publishedSince(db: Db, regionId: number, after: number): AsyncGenerator<PublishedState[]> {
  for (let last = after; ; ) {
    const rows = await readSince(db, regionId, last, batchSize);
    if (rows.length > 0) yield rows;
    if (rows.length < batchSize) return;
    last = rows.at(-1)!.revision;
  }
}

const countRevisions = prepared(
  'hosts_count_revisions',
  `insert into revisions (name, value) values ($1, 0) on conflict do nothing`,
);
const lockRevision = prepared('hosts_lock_revision', `select value from revisions where name = $1 for share`);
const readRevisions = prepared<Key & { revision: number }, [regionId: number]>(
  'hosts_published_revisions',
  `select kind, id, revision from published_states where region_id = $1 and state is not null`,
);
const setConverged = preparedExists(
  'hosts_set_converged',
  `with set as (update hosts set converged = true where ${validRow} returning name, region_id)
   select name, pg_notify($4, 'hosts') from set`,
);

/**
 * Marks the host as converged if `matches` finds that it has applied exactly the published states. Publishing waits for this
 * transaction, so the worker waits for this host from the next revision on.
 * @returns false if it has not; null if the lease is lost
 */
export async function markConverged(
  db: Db,
  { regionId, name, incarnation }: Incarnation,
  matches: (published: (Key & { revision: number })[]) => boolean,
): Promise<boolean | null> {
  return transaction(db, async (tx: Tx) => {
    // An agent that hangs here would stop all publishing of the region.
    await tx.$client.query(`set local idle_in_transaction_session_timeout = '5s'`);
    await countRevisions(tx, revisionName(regionId));
    await lockRevision(tx, revisionName(regionId));
    if (!matches(await readRevisions(tx, regionId))) return false;
    const isSet = await setConverged(tx, regionId, name, incarnation, publishedChannel(regionId));
    return isSet ? true : null;
  });
}

const setNotConverged = prepared(
  'hosts_set_not_converged',
  `with set as (update hosts set converged = false where ${ownRow} returning region_id)
   select pg_notify($4, ''), pg_notify($5, 'hosts') from set`,
);

/** The host serves nothing, although its lease is valid. */
export const markNotConverged = (db: Db, { regionId, name, incarnation }: Incarnation) =>
  setNotConverged(db, regionId, name, incarnation, observedChannel(regionId), publishedChannel(regionId));

export interface Observation extends Key {
  revision: number;
  error: ObservedError | null;
}

const writeObservations = prepared(
  'hosts_observe',
  `with host as (select region_id, name from hosts where ${validRow}),
   seen as (
     insert into host_observations as o (region_id, host, kind, id, revision, error)
     select host.region_id, host.name, g.kind, g.id, g.revision, g.error
     from host, unnest($4::text[], $5::text[], $6::int8[], $7::json[]) as g (kind, id, revision, error)
     join published_states p on p.kind = g.kind and p.id = g.id and p.revision >= g.revision
     where p.region_id = host.region_id
     on conflict (region_id, host, kind, id) do update set revision = excluded.revision, error = excluded.error
     where o.revision < excluded.revision
       or o.revision = excluded.revision and (o.error is not null or excluded.error is not null))
   select name, pg_notify($8, '') from host`,
);

/** Writes nothing if the lease is lost, and no revision that a failover of the database has lost. */
export const observe = (db: Db, host: Incarnation, observations: Observation[]) =>
  writeObservations(
    db,
    ...[host.regionId, host.name, host.incarnation],
    ...columnsOf(observations, 'kind', 'id', 'revision'),
    observations.map(({ error }) => error && JSON.stringify(error)),
    observedChannel(host.regionId),
  );

const removeUnpublished = prepared(
  'hosts_remove_unpublished',
  `delete from host_observations o where o.region_id = $1 and o.host = $2
     and exists (select from hosts where ${ownRow})
     and not exists (select from published_states p where p.region_id = $1 and p.kind = o.kind and p.id = o.id)`,
);

/** Removes observations of what was removed while this host was away. */
export const forgetRemoved = (db: Db, { regionId, name, incarnation }: Incarnation) =>
  removeUnpublished(db, regionId, name, incarnation);

const writeReadings = prepared(
  'hosts_write_readings',
  `insert into host_readings (region_id, host, kind, read_at, readings)
   select region_id, name, $4, clock_timestamp(), $5 from hosts where ${validRow}
   on conflict (region_id, host, kind) do update set read_at = excluded.read_at, readings = excluded.readings`,
);

/** Replaces the last readings of this kind; writes nothing if the lease is lost. `readings`: gzip in base64 (table.ts). */
export const replaceReadings = (db: Db, host: Incarnation, kind: string, readings: string) =>
  writeReadings(db, host.regionId, host.name, host.incarnation, kind, readings);

const drained = prepared(
  'hosts_drained',
  `with done as (update hosts set state = 'drained' where ${ownRow} and state = 'draining' returning region_id)
   select pg_notify($4, 'hosts') from done`,
);

/** Does nothing unless the host drains: the operator may have reverted it. */
export const markDrained = (db: Db, { regionId, name, incarnation }: Incarnation) =>
  drained(db, regionId, name, incarnation, publishedChannel(regionId));
