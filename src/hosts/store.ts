/**
 * The SQL of the worker's side: publishing states, and what hosts have observed. Times are of the clock of the database, so that
 * clocks of hosts may differ.
 */
import {
  columnsOf,
  type Db,
  prepared,
  preparedColumn,
  preparedExists,
  preparedValue,
  type Tx,
} from '../platform/db.ts';
import type { HostView } from './part.ts';
import type { HostReport, ObservedError } from './table.ts';

/**
 * How long after the end of its lease a host may still serve: it begins to stop when the lease ends, and keepalived's check
 * runs once a second.
 */
export const stopMarginSeconds = 2;

/** The row of `revisions` that counts the revisions of a region. Its lock orders the commits. */
export const revisionName = (regionId: number) => `hosts:${regionId}`;

/** The row of `revisions` that counts the workers of a region. Only the last one may publish. */
const workerName = (regionId: number) => `hosts:${regionId}:worker`;

/** Announces new revisions, and changed states of hosts, to agents. */
export const publishedChannel = (regionId: number) => `cloudyard_published_${regionId}`;
/** Announces observations to the worker. */
export const observedChannel = (regionId: number) => `cloudyard_observed_${regionId}`;

/** SQL: whether changes wait for the host `h`. */
export const serves = `(h.converged and h.lease_until + interval '${stopMarginSeconds} seconds' > clock_timestamp())`;

/** SQL: whether the host `h`, whose lease is valid, serves nothing for a reason that does not pass by itself. */
export const isStuck = `(h.lease_until > clock_timestamp() and h.state = 'active' and not h.converged
  and h.started_at < clock_timestamp() - interval '2 minutes')`;

/** Of such a host. */
export const notServing = 'serves nothing: it cannot converge or serve; its log has the reason';

export interface Key {
  kind: string;
  id: string;
}

/** For maps and sets of keys. */
export const keyOf = ({ kind, id }: Key) => `${kind}\n${id}`;

/** The last element of each key. */
export function lastOfEach<Keyed extends Key>(elements: Keyed[]): Keyed[] {
  return [...new Map(elements.map((element) => [keyOf(element), element])).values()];
}

const givenKeys = `unnest($2::text[], $3::text[]) as k (kind, id)`;

const readPublished = prepared<Key & { revision: number; state: Buffer | null; failed: boolean }>(
  'hosts_read_published',
  `select p.kind, p.id, p.revision, p.state, exists (
     select from host_observations o where o.region_id = p.region_id and o.kind = p.kind and o.id = p.id
       and o.revision = p.revision and o.error is not null) as failed
   from ${givenKeys} join published_states p on p.region_id = $1 and p.kind = k.kind and p.id = k.id`,
);

/** The published states of these keys. `failed`: a host could not apply this revision. */
export const findPublished = (db: Db, regionId: number, keys: Key[]) =>
  readPublished(db, regionId, ...columnsOf(keys, 'kind', 'id'));

const claim = preparedValue<number>(
  'hosts_claim',
  `insert into revisions as r (name, value) values ($1, 1)
   on conflict (name) do update set value = r.value + 1 returning value`,
);

/** Makes the caller the only publisher of a region. Returns its epoch, for `insertPublished`. */
export const claimPublishing = (db: Db | Tx, regionId: number) => claim(db, workerName(regionId));

/**
 * The row of the counter stays locked until the commit, so revisions become visible in their order. The row of the epoch
 * does too, so a new worker, which waits for it, sees everything that its predecessor has published.
 */
const publish = prepared<Key & { revision: number }>(
  'hosts_publish',
  `with epoch as (select value from revisions where name = $7 and value = $8 for share),
   counted as (
     insert into revisions as r (name, value) select $4, cardinality($2::text[]) from epoch
     on conflict (name) do update set value = r.value + excluded.value returning value),
   published as (
     insert into published_states as p (region_id, kind, id, revision, state)
     select $1, g.kind, g.id, counted.value - cardinality($2::text[]) + g.n, g.state
     from counted, unnest($2::text[], $3::text[], $5::bytea[]) with ordinality as g (kind, id, state, n)
     on conflict (region_id, kind, id) do update set revision = excluded.revision, state = excluded.state
     returning kind, id, revision)
   select published.*, pg_notify($6, '') from published`,
);

/** Returns the new revisions; none if another worker has claimed the region since `epoch`. */
export const insertPublished = (
  db: Db,
  { regionId, epoch }: { regionId: number; epoch: number },
  states: (Key & { state: Buffer | null })[],
) =>
  publish(
    db,
    ...[regionId, ...columnsOf(states, 'kind', 'id'), revisionName(regionId)],
    ...[states.map(({ state }) => state), publishedChannel(regionId), workerName(regionId), epoch],
  );

export interface Progress extends Key {
  host: string;
  /** The revision that is published; null: nothing. */
  published: number | null;
  /** Null: nothing of this resource. */
  revision: number | null;
  error: ObservedError | null;
}

const readProgress = prepared<Progress>(
  'hosts_progress',
  `select k.kind, k.id, h.name as host, p.revision as published, o.revision, o.error
   from ${givenKeys} cross join hosts h
   left join published_states p on p.region_id = $1 and p.kind = k.kind and p.id = k.id
   left join host_observations o on o.region_id = h.region_id and o.host = h.name and o.kind = k.kind and o.id = k.id
   where h.region_id = $1 and ${serves}`,
);

/** What each host that serves, or may still serve, has observed of these keys. */
export const findProgress = (db: Db, regionId: number, keys: Key[]) =>
  readProgress(db, regionId, ...columnsOf(keys, 'kind', 'id'));

const purge = prepared(
  'hosts_purge',
  `with gone as (
     delete from published_states p using unnest($2::text[], $3::text[], $4::int8[]) as k (kind, id, revision)
     where p.region_id = $1 and p.kind = k.kind and p.id = k.id and p.revision = k.revision and p.state is null
     returning p.kind, p.id, p.revision)
   delete from host_observations o using gone g
   where o.region_id = $1 and o.kind = g.kind and o.id = g.id and o.revision <= g.revision`,
);

/** Deletes what marks removals that all hosts have observed. */
export const purgeRemoved = (db: Db, regionId: number, removed: (Key & { revision: number })[]) =>
  purge(db, regionId, ...columnsOf(removed, 'kind', 'id', 'revision'));

/** Ids of the states of a kind that are not removed, sorted. */
export const publishedIds = preparedColumn<string, [regionId: number, kind: string]>(
  'hosts_published_ids',
  `select id from published_states where region_id = $1 and kind = $2 and state is not null order by id`,
);

/** The encrypted states of a kind that are not removed (state-codec.ts). */
export const publishedOfKind = prepared<{ id: string; state: Buffer }, [regionId: number, kind: string]>(
  'hosts_published_of_kind',
  `select id, state from published_states where region_id = $1 and kind = $2 and state is not null`,
);

/** The readings of hosts that serve, not older than some seconds. */
export const readingsOfKind = prepared<{ host: string; readings: string }, [regionId: number, kind: string]>(
  'hosts_readings',
  `select r.host, r.readings from host_readings r join hosts h on h.region_id = r.region_id and h.name = r.host
   where r.region_id = $1 and r.kind = $2 and ${serves} and r.read_at > clock_timestamp() - interval '30 seconds'`,
);

export interface HostRow extends HostView {
  regionId: number;
  leaseUntil: Date;
  /** Seconds until the end of the lease; negative after it. */
  leaseSeconds: number;
  report: HostReport;
  joinedAt: Date;
  startedAt: Date;
  /** Its lease is valid, but it has not converged for minutes. */
  isStuck: boolean;
  /** Published states that it has not applied, as of its last report. */
  pendingChanges: number;
}

const hostColumns = `h.region_id as "regionId", h.name, h.address, h.interface, h.state, h.converged,
  h.lease_until > clock_timestamp() as "leaseValid", h.lease_until as "leaseUntil",
  extract(epoch from h.lease_until - clock_timestamp())::float8 as "leaseSeconds",
  h.report, h.joined_at as "joinedAt", h.started_at as "startedAt", ${isStuck} as "isStuck"`;

/** By what the host reports: to compare its observations with all published states would cost seconds in a large region. */
const pendingChanges = `(select count(*) from published_states p where p.region_id = h.region_id
    and p.revision > coalesce((h.report->'applied'->>'revision')::int8, 0))
  + coalesce((h.report->'applied'->>'pending')::int8, 0) as "pendingChanges"`;

/** Hosts, ordered by region and name; $1: only of these regions, or null; $2: only this name, or null. */
export const listHosts = prepared<HostRow, [regionIds: number[] | null, name: string | null]>(
  'hosts_list',
  `select ${hostColumns}, ${pendingChanges} from hosts h
   where ($1::int[] is null or h.region_id = any ($1)) and ($2::text is null or h.name = $2) order by h.region_id, h.name`,
);

/** The hosts of a region without their counts, for agents. */
export const hostsOfRegion = prepared<Omit<HostRow, 'pendingChanges'>, [regionId: number]>(
  'hosts_of_region',
  `select ${hostColumns} from hosts h where h.region_id = $1 order by h.name`,
);

/** Ends a lease that lasts longer than these seconds, as if it had ended so long ago that the host does not serve. */
const endDistant = preparedExists(
  'hosts_end_distant_lease',
  `with ended as (
     update hosts set lease_until = clock_timestamp() - interval '${stopMarginSeconds} seconds'
     where region_id = $1 and name = $2 and lease_until > clock_timestamp() + $3 * interval '1 second' returning name)
   select pg_notify($4, ''), pg_notify($5, 'hosts') from ended`,
);

/** False: it was renewed or ended meanwhile. */
export const endDistantLease = (db: Db, regionId: number, name: string, seconds: number) =>
  endDistant(db, ...[regionId, name, seconds, observedChannel(regionId), publishedChannel(regionId)]);

/** The addresses among the hosts, of all regions. */
export const hostAddresses = prepared<{ name: string; address: string }, []>(
  'hosts_addresses',
  `select name, address from hosts order by region_id, name`,
);
