/**
 * Crossings: counters whose usage rose to the client's threshold.
 *
 * Invariant: `alerted_at` of a counter is set exactly while its usage is at or above the threshold, by the statement that
 * changes the usage or the limit. The crossing, and the job that notifies the client, are written in the same transaction.
 * Nothing polls: a change that crosses nothing only reads the threshold.
 *
 * A crossing waits for the end of a grouping window, so that one message reports all crossings of the window. The window
 * begins with the first crossing; a client has at most one job.
 */
import { columnsOf, type Db, deferred, prepared, type Tx } from '../platform/db.ts';
import { announce, hasJob, insertJobs, notificationQueue } from '../tasks/jobs.ts';
import { priorityAt } from '../tasks/priority.ts';
import { globalKinds, type Kind, regionalKinds } from './kinds.ts';

/** Percent, for clients that have not set one. */
export const defaultThreshold = 80;

/** The kind of the job that notifies a client of its crossings; its id is the client's. */
export const alertJob = 'quota_alert';

export interface Crossing {
  regionId: number;
  kind: Kind;
  usage: number;
  limit: number;
}

/** A counter after a statement that may have made it cross. */
export type Crossed = Omit<CrossedIn, 'regionId'>;
type CrossedIn = Crossing & { crossed: boolean | null };

/** SQL: the threshold of the client `$1`. */
const threshold = `coalesce((select t.threshold from quota_thresholds t where t.client_id = $1), ${defaultThreshold})`;

/** SQL: whether usage has reached the threshold of the client `$1`. Without usage, a limit of zero is not reached. */
const reached = (usage: string, limit: string) => `(${usage} > 0 and ${usage} * 100 >= ${threshold} * ${limit})`;

/** SQL: the override, or else the default of the kind; the parameters `kinds` and `defaults` list the defaults. */
export const limitOf = (override: string, kinds: string, defaults: string) =>
  `coalesce(${override}, (${defaults}::bigint[])[array_position(${kinds}::text[], c.kind)])`;

/** SQL: the new `alerted_at` of a counter with this usage and limit. */
export const alertedAt = (before: string, usage: string, limit: string) =>
  `case when ${reached(usage, limit)} then coalesce(${before}, now()) end`;

/** SQL: whether the counter crossed in this transaction. `now()` is the start of the transaction. */
export const crossedNow = 'c.alerted_at is not distinct from now() as crossed';

/** SQL: the job of a client, to run after some seconds. A waiting job keeps its time, because that is earlier. */
const alertOf = (clientId: string, seconds: string) =>
  `select '${alertJob}', ${clientId}::int::text, '${notificationQueue}', ${clientId}::int,
          ${priorityAt(`'${notificationQueue}'`, '0')}, now() + ${seconds}::int * interval '1 second'`;

/** PL/pgSQL: records crossings of the client `$1`, and enqueues the job that notifies it, to run after `$6` seconds. */
export const recordCrossings = (crossings: string) =>
  `insert into quota_crossings (client_id, region_id, kind, usage, "limit") ${crossings}
   on conflict (client_id, region_id, kind) do update set usage = excluded.usage, "limit" = excluded."limit";
   ${insertJobs(alertOf('$1', '$6'))};
   perform ${announce(notificationQueue)};`;

const record = deferred('quota_record_crossings', {
  parameters: 'int, int[], text[], bigint[], bigint[], int',
  body: recordCrossings('select $1, * from unnest($2, $3, $4, $5)'),
});

const enqueueAlert = prepared(
  'quota_enqueue_alert',
  `with alert as (${insertJobs(alertOf('$1', '$2'))}) select ${announce(notificationQueue)}`,
);

const enqueueLostAlerts = prepared<object, [], Db>(
  'quota_enqueue_lost_alerts',
  insertJobs(
    `${alertOf('c.client_id', '0')} from (select distinct client_id from quota_crossings) c
     where not ${hasJob(`'${alertJob}'`, 'c.client_id::text')} order by c.client_id`,
  ),
);

const limit = limitOf('c.limit_override', '$2', '$3');

const evaluate = prepared<CrossedIn>(
  'quota_evaluate',
  `with locked as (
     select region_id, kind from quota_counters where client_id = $1 order by region_id, kind for update)
   update quota_counters c set alerted_at = ${alertedAt('c.alerted_at', 'c.usage', limit)}
   from locked l where c.client_id = $1 and c.region_id = l.region_id and c.kind = l.kind
   returning c.region_id as "regionId", c.kind, c.usage, ${limit} as limit, ${crossedNow}`,
);

/** Crossings of an earlier threshold that do not reach the current one, by their own figures or the current ones. */
const discard = prepared(
  'quota_discard_crossings',
  `delete from quota_crossings x using quota_counters c
   where x.client_id = $1 and c.client_id = $1 and c.region_id = x.region_id and c.kind = x.kind
     and c.alerted_at is null and not ${reached('x.usage', 'x."limit"')}`,
);

const take = prepared<Crossing>(
  'quota_take_crossings',
  `with taken as (delete from quota_crossings where client_id = $1 returning *)
   select t.region_id as "regionId", t.kind, case when c.alerted_at is null then t.usage else c.usage end as usage,
          case when c.alerted_at is null then t."limit" else ${limit} end as limit
   from taken t left join quota_counters c using (client_id, region_id, kind)
   order by t.region_id, t.kind collate "C"`,
);

const readThreshold = prepared<{ threshold: number | null; last_message: unknown; last_sending: Date | null }>(
  'quota_threshold',
  'select threshold, last_message, last_sending from quota_thresholds where client_id = $1',
);

const writeThreshold = prepared(
  'quota_write_threshold',
  `insert into quota_thresholds (client_id, threshold) values ($1, $2)
   on conflict (client_id) do update set threshold = excluded.threshold`,
);

const deleteThreshold = prepared('quota_delete_threshold', 'delete from quota_thresholds where client_id = $1');

const recordMessage = prepared(
  'quota_record_message',
  `insert into quota_thresholds (client_id, last_message, last_sending) values ($1, $2::json, $3)
   on conflict (client_id) do update set last_message = excluded.last_message, last_sending = excluded.last_sending`,
);

/** `windowSeconds`: the grouping window. */
export function createCrossings(defaults: Record<Kind, number>, windowSeconds: number) {
  const kinds: Kind[] = [...regionalKinds, ...globalKinds];
  const limits = kinds.map((kind) => defaults[kind]);

  const recordCrossed = async (tx: Tx, clientId: number, counters: CrossedIn[]): Promise<void> => {
    const crossed = counters.filter((counter) => counter.crossed);
    if (crossed.length === 0) return;
    await record(tx, clientId, ...columnsOf(crossed, 'regionId', 'kind', 'usage', 'limit'), windowSeconds);
  };

  /** Evaluates all counters of a client again. */
  const evaluateAll = async (tx: Tx, clientId: number): Promise<void> => {
    await recordCrossed(tx, clientId, await evaluate(tx, clientId, kinds, limits));
  };

  return {
    /** Records the counters that crossed, and enqueues the job that notifies the client. */
    async record(
      tx: Tx,
      { clientId, regionId }: { clientId: number; regionId: number },
      counters: Crossed[],
    ): Promise<void> {
      const counted = counters.map((counter) => ({ ...counter, regionId }));
      await recordCrossed(tx, clientId, counted);
    },

    /** The stored threshold of the client; undefined: none is stored, so the default applies. */
    async threshold(db: Db | Tx, clientId: number) {
      const [row] = await readThreshold(db, clientId);
      return row && { threshold: row.threshold, lastMessage: row.last_message, lastSending: row.last_sending };
    },

    /**
     * Sets the threshold, or deletes it with the record of the last message. Counters at or above the new threshold have
     * crossed; crossings below it that no message has reported are discarded. A concurrent reservation may still use the old
     * threshold, so the job evaluates all counters again.
     */
    async setThreshold(tx: Tx, clientId: number, percent: number | null): Promise<void> {
      await (percent === null ? deleteThreshold(tx, clientId) : writeThreshold(tx, clientId, percent));
      await evaluateAll(tx, clientId);
      await discard(tx, clientId);
      await enqueueAlert(tx, clientId, windowSeconds);
    },

    /**
     * Removes and returns the crossings that no message has reported, with current figures (with the recorded ones where the
     * usage has fallen below the threshold since). Call it in the transaction that issues the message. It holds the locks of
     * all counters of the client until the commit, so messages of a client are written one after the other.
     */
    async take(tx: Tx, clientId: number): Promise<Crossing[]> {
      await evaluateAll(tx, clientId);
      return take(tx, clientId, kinds, limits);
    },

    /** Enqueues missing jobs again: only a broken database can have lost one. */
    requeueLost: enqueueLostAlerts,

    /** Records the message that was sent, and when. */
    async recordMessage(tx: Tx, clientId: number, message: unknown, at: Date): Promise<void> {
      await recordMessage(tx, clientId, JSON.stringify(message), at);
    },
  };
}
