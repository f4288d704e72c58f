/**
 * Crossings: usage that reached the client's threshold from below.
 *
 * Invariant: a counter's `alerted_at` is set exactly while its usage is at the threshold or above, by the statement that
 * changes the usage or the limit; the crossing, and the job that will tell of it, stand in the same transaction. Nothing
 * polls: a client that crosses nothing costs one look at its threshold.
 *
 * A crossing waits for the end of the grouping window, so that one message tells of all that crossed. The window begins
 * with the first of them; the job of a client is one (`job_key`), whoever adds it.
 */
import { prepared } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import { globalKinds, regionalKinds } from './kinds.ts';
import type { Kind } from './kinds.ts';

/** Percent, where a client has not chosen. */
export const defaultThreshold = 80;

/** The job that tells a client of its crossings; it carries the client's id. */
export const alertJob = 'quota_alert';

export interface Crossing {
  regionId: number;
  kind: Kind;
  usage: number;
  limit: number;
}

/** A counter after a statement that may have made it cross. */
export interface Crossed {
  kind: Kind;
  usage: number;
  limit: number;
  crossed: boolean | null;
}

/** SQL: the threshold of the client `$1`. */
const threshold = `coalesce((select t.threshold from quota_thresholds t where t.client_id = $1), ${defaultThreshold})`;

/** SQL: whether the client `$1` is to be told. A limit of zero is reached by what is in use, not by nothing. */
const reached = (usage: string, limit: string) => `(${usage} > 0 and ${usage} * 100 >= ${threshold} * ${limit})`;

/** SQL: the limit that an override leaves, where the parameters `kinds` and `defaults` are the defaults of the kinds. */
export const limitOf = (override: string, kinds: string, defaults: string) =>
  `coalesce(${override}, (${defaults}::bigint[])[array_position(${kinds}::text[], c.kind)])`;

/** SQL: `alerted_at` of a counter that will have this usage and limit. */
export const alertedAt = (before: string, usage: string, limit: string) =>
  `case when ${reached(usage, limit)} then coalesce(${before}, now()) end`;

/** SQL: whether this transaction made the counter cross. `now()` is the begin of the transaction. */
export const crossedNow = 'c.alerted_at is not distinct from now() as crossed';

/** SQL: asks for the job of a client after so many seconds, unless it is asked for sooner already. */
const askFor = (clientId: string, seconds: string) =>
  `graphile_worker.add_job('${alertJob}', json_build_object('client_id', ${clientId}::int),
     job_key => '${alertJob}:' || ${clientId}::int, job_key_mode => 'preserve_run_at',
     run_at => now() + ${seconds}::int * interval '1 second')`;

const note = prepared(
  'quota_note_crossings',
  `with noted as (
     insert into quota_crossings (client_id, region_id, kind, usage, "limit")
     select $1, * from unnest($2::int[], $3::text[], $4::bigint[], $5::bigint[])
     on conflict (client_id, region_id, kind) do update set usage = excluded.usage, "limit" = excluded."limit")
   select 1 from ${askFor('$1', '$6')}`,
);

const askAgain = prepared('quota_ask_again', `select 1 from ${askFor('$1', '$2')}`);

const askForLost = prepared(
  'quota_ask_for_lost',
  `select 1 from (select distinct client_id from quota_crossings) c, ${askFor('c.client_id', '0')}
   where not exists (select from graphile_worker.jobs j where j.key = '${alertJob}:' || c.client_id
                     and (j.attempts < j.max_attempts or j.locked_at is not null))`,
);

const limit = limitOf('c.limit_override', '$2', '$3');

const judge = prepared<Crossed & { region_id: number }>(
  'quota_judge',
  `with locked as (
     select region_id, kind from quota_counters where client_id = $1 order by region_id, kind for update)
   update quota_counters c set alerted_at = ${alertedAt('c.alerted_at', 'c.usage', limit)}
   from locked l where c.client_id = $1 and c.region_id = l.region_id and c.kind = l.kind
   returning c.region_id, c.kind, c.usage, ${limit} as limit, ${crossedNow}`,
);

const take = prepared<{ region_id: number; kind: Kind; usage: number; limit: number }>(
  'quota_take_crossings',
  `with taken as (delete from quota_crossings where client_id = $1 returning *)
   select t.region_id, t.kind, case when c.alerted_at is null then t.usage else c.usage end as usage,
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

const forgetThreshold = prepared('quota_forget_threshold', 'delete from quota_thresholds where client_id = $1');

const noteMessage = prepared(
  'quota_note_message',
  `insert into quota_thresholds (client_id, last_message, last_sending) values ($1, $2::json, $3)
   on conflict (client_id) do update set last_message = excluded.last_message, last_sending = excluded.last_sending`,
);

export type Crossings = ReturnType<typeof createCrossings>;

/** `windowSeconds`: how long the first crossing waits for others. */
export function createCrossings(defaults: Record<Kind, number>, windowSeconds: number) {
  const kinds: Kind[] = [...regionalKinds, ...globalKinds];
  const limits = kinds.map((kind) => defaults[kind]);

  const noteAll = async (tx: Tx, clientId: number, crossings: Crossing[]): Promise<void> => {
    if (crossings.length === 0) return;
    const column = <K extends keyof Crossing>(name: K) => crossings.map((crossing) => crossing[name]);
    await note(tx, clientId, column('regionId'), column('kind'), column('usage'), column('limit'), windowSeconds);
  };

  /** Looks at all counters of a client anew. */
  const judgeAll = async (tx: Tx, clientId: number): Promise<void> => {
    const counters = await judge(tx, clientId, kinds, limits);
    const crossed = counters.filter((counter) => counter.crossed);
    await noteAll(
      tx,
      clientId,
      crossed.map(({ region_id, ...rest }) => ({ regionId: region_id, ...rest })),
    );
  };

  return {
    /** Notes those of the counters that crossed, and asks for the message. */
    async note(tx: Tx, scope: { clientId: number; regionId: number }, counters: Crossed[]): Promise<void> {
      const crossed = counters.filter((counter) => counter.crossed);
      await noteAll(
        tx,
        scope.clientId,
        crossed.map((counter) => ({ regionId: scope.regionId, ...counter })),
      );
    },

    /** What stands of the client's threshold; undefined: nothing, so the default is in force. */
    async threshold(db: Db | Tx, clientId: number) {
      const [row] = await readThreshold(db, clientId);
      return row && { threshold: row.threshold, lastMessage: row.last_message, lastSending: row.last_sending };
    },

    /**
     * Sets the threshold, or forgets it and what was last sent. Counters that are at the new one or above have crossed.
     * Who reserves at this very moment may still go by the old one, so all is looked at again when the window ends.
     */
    async setThreshold(tx: Tx, clientId: number, percent: number | null): Promise<void> {
      await (percent === null ? forgetThreshold(tx, clientId) : writeThreshold(tx, clientId, percent));
      await judgeAll(tx, clientId);
      await askAgain(tx, clientId, windowSeconds);
    },

    /**
     * Takes the crossings that no message tells of yet, with the figures as they are now (where the usage has fallen
     * since, as they were). In the transaction that issues the message.
     */
    async take(tx: Tx, clientId: number): Promise<Crossing[]> {
      await judgeAll(tx, clientId);
      const rows = await take(tx, clientId, kinds, limits);
      return rows.map(({ region_id, ...rest }) => ({ regionId: region_id, ...rest }));
    },

    /** Asks anew for jobs that are not there: only a broken database can have lost one. */
    async requeueLost(db: Db): Promise<void> {
      await askForLost(db);
    },

    /** Keeps what was told, and when, beside the threshold. */
    async noteMessage(tx: Tx, clientId: number, message: unknown, at: Date): Promise<void> {
      await noteMessage(tx, clientId, JSON.stringify(message), at);
    },
  };
}
