/**
 * Quotas: limits and usage of a client in a region, by kind.
 *
 * Invariants: a counter changes in the transaction of the row that it counts, so the counters match the rows after any
 * crash. The condition `usage + n <= limit` is part of the statement that adds, so concurrent requests cannot exceed a
 * limit. Each call locks its counters in the order of their names, so two calls never deadlock.
 *
 * The counter is the hottest row of a create, so reservations are deferred to the last statement of a transaction, and their
 * refusal is thrown by it. Usage may always shrink, even above a limit that was lowered. The statements also return whether
 * the client's threshold was reached (crossings.ts).
 */
import { ClientError } from '../errors/catalogue.ts';
import { batchedRead, preparedByKeys } from '../platform/batched-read.ts';
import { type Db, deferred, prepared, type Tx } from '../platform/db.ts';
import { alertedAt, createCrossings, type Crossed, crossedNow, limitOf, recordCrossings } from './crossings.ts';
import { type Kind, meaningOfKind } from './kinds.ts';

/** The counters of a client in a region (`globalRegion` for global kinds). */
export interface QuotaScope {
  clientId: number;
  regionId: number;
}

export interface QuotaFigure {
  kind: Kind;
  limit: number;
  usage: number;
  requested: number;
}

/** Default limits by kind, from the quotas file. */
export type DefaultLimits = Record<Kind, number>;

type Amounts = Partial<Record<Kind, number>>;

/** SQL: the limit of the counter `c`. Statements that use it have the kinds as `$3` and their defaults as `$5`. */
const limit = limitOf('c.limit_override', '$3', '$5');

const quotaExceededState = 'CY001';

/** `$6`: the grouping window of crossings. */
const add = deferred('quota_reserve', {
  parameters: 'int, int, text[], bigint[], bigint[], int',
  hot: true,
  isPlannedOnce: true,
  declare: 'v_counters jsonb;',
  body: `
  with added as (
    insert into quota_counters as c (client_id, region_id, kind, usage, alerted_at)
    select $1, $2, a.kind, a.amount, ${alertedAt('null::timestamptz', 'a.amount', 'a.allowed')}
    from (
      select kind, amount, coalesce(
        (select limit_override from quota_counters o where o.client_id = $1 and o.region_id = $2 and o.kind = u.kind),
        default_limit) as allowed
      from unnest($3, $4, $5) as u (kind, amount, default_limit)) as a
    where a.amount <= a.allowed
    order by a.kind
    on conflict (client_id, region_id, kind) do update set usage = c.usage + excluded.usage,
      alerted_at = ${alertedAt('c.alerted_at', '(c.usage + excluded.usage)', limit)}
    where c.usage + excluded.usage <= ${limit}
    returning c.kind, c.usage, ${limit} as limit, ${crossedNow})
  select coalesce(jsonb_agg(added), '[]') into v_counters from added;
  if jsonb_array_length(v_counters) < cardinality($3) then
    raise exception using errcode = '${quotaExceededState}', message = 'quota exceeded', detail = (
      select coalesce(jsonb_agg(jsonb_build_object('kind', w.kind, 'limit', coalesce(c.limit_override, w.default_limit),
        'usage', coalesce(c.usage, 0), 'requested', w.amount) order by w.n), '[]')
      from unnest($3, $4, $5) with ordinality as w (kind, amount, default_limit, n)
        left join quota_counters c on c.client_id = $1 and c.region_id = $2 and c.kind = w.kind
      where not v_counters @> jsonb_build_array(jsonb_build_object('kind', w.kind)));
  end if;
  if v_counters @> '[{"crossed": true}]' then
    ${recordCrossings(
      `select $1, $2, kind, usage, "limit" from jsonb_to_recordset(v_counters)
      as r (kind text, usage bigint, "limit" bigint, crossed boolean) where crossed`,
    )}
  end if;`,
  errors: { [quotaExceededState]: (detail) => quotaExceeded(JSON.parse(detail) as QuotaFigure[]) },
});

const subtract = deferred('quota_release', {
  parameters: 'int, int, text[], bigint[], bigint[]',
  hot: true,
  isPlannedOnce: true,
  body: `
  with locked as (
    select c.kind, a.amount
    from quota_counters c join unnest($3, $4) as a (kind, amount) on a.kind = c.kind
    where c.client_id = $1 and c.region_id = $2
    order by c.kind for update of c)
  update quota_counters c set usage = c.usage - l.amount,
    alerted_at = case when c.alerted_at is not null then ${alertedAt('c.alerted_at', '(c.usage - l.amount)', limit)} end
  from locked l where c.client_id = $1 and c.region_id = $2 and c.kind = l.kind;`,
});

interface Counters extends QuotaScope {
  counters: Partial<Record<Kind, { limit: number | null; usage: number }>>;
}

/** The counters of a client in a region. Concurrent reads share a statement. */
const read = batchedRead<Counters>(
  preparedByKeys(
    'quota_read',
    (keys) => `select client_id as "clientId", region_id as "regionId",
       json_object_agg(kind, json_build_object('limit', limit_override, 'usage', usage)) as counters
     from quota_counters where (client_id, region_id) in (${keys}) group by 1, 2`,
    2,
  ),
  ({ clientId, regionId }) => [clientId, regionId],
);

const override = prepared<Crossed>(
  'quota_override',
  `insert into quota_counters as c (client_id, region_id, kind, limit_override)
   select $1, $2, a.kind, a.value from unnest($3::text[], $4::bigint[]) as a (kind, value) order by a.kind
   on conflict (client_id, region_id, kind) do update set limit_override = excluded.limit_override,
     alerted_at = ${alertedAt('c.alerted_at', 'c.usage', limitOf('excluded.limit_override', '$3', '$5'))}
   returning c.kind, c.usage, ${limit} as limit, ${crossedNow}`,
);

const correct = prepared<Crossed>(
  'quota_correct',
  `update quota_counters c set usage = a.amount, alerted_at = ${alertedAt('c.alerted_at', 'a.amount', limit)}
   from unnest($3::text[], $4::bigint[]) as a (kind, amount)
   where c.client_id = $1 and c.region_id = $2 and c.kind = a.kind
   returning c.kind, c.usage, ${limit} as limit, ${crossedNow}`,
);

export type Quota = ReturnType<typeof createQuota>;

/** `windowSeconds`: how long a crossing of the threshold waits for others, to be reported together. */
export function createQuota(defaults: DefaultLimits, windowSeconds: number) {
  const crossings = createCrossings(defaults, windowSeconds);
  const parameters = (scope: QuotaScope, given: [Kind, number | null][]) => [
    scope.clientId,
    scope.regionId,
    given.map(([kind]) => kind),
    given.map(([, value]) => value),
    given.map(([kind]) => defaults[kind]),
  ];
  const figures = async (db: Db | Tx, scope: QuotaScope, kinds: Kind[]): Promise<Omit<QuotaFigure, 'requested'>[]> => {
    const counters = (await read(db, scope.clientId, scope.regionId))?.counters ?? {};
    return kinds.map((kind) => ({
      kind,
      limit: counters[kind]?.limit ?? defaults[kind],
      usage: counters[kind]?.usage ?? 0,
    }));
  };

  return {
    /** Limit and usage of the given kinds. */
    figures,
    /** Thresholds, and the counters that reached them. */
    crossings,

    /** The kinds whose limits `amounts` would exceed. Changes nothing. */
    async exceeded(db: Db | Tx, scope: QuotaScope, amounts: Amounts): Promise<QuotaFigure[]> {
      const wanted = entries(amounts).filter(([, amount]) => amount > 0);
      const kinds = wanted.map(([kind]) => kind);
      const current = await figures(db, scope, kinds);
      return current
        .map((figure, i) => ({ ...figure, requested: wanted[i]![1] }))
        .filter((figure) => figure.usage + figure.requested > figure.limit);
    },

    /**
     * A deferred write that adds to counters. If the quota is exceeded, the transaction fails with ClientError 409 QuotaExceeded
     * and the figures.
     */
    async reserve(tx: Tx, scope: QuotaScope, amounts: Amounts): Promise<void> {
      const wanted = entries(amounts).filter(([, amount]) => amount > 0);
      if (wanted.length > 0) await add(tx, ...parameters(scope, wanted), windowSeconds);
    },

    /** A deferred write that subtracts from counters, in the transaction that removes the rows. */
    async release(tx: Tx, scope: QuotaScope, amounts: Amounts): Promise<void> {
      await subtract(tx, ...parameters(scope, entries(amounts)));
    },

    /** Sets limits; null restores the default. */
    async setLimits(tx: Tx, scope: QuotaScope, limits: Partial<Record<Kind, number | null>>): Promise<void> {
      await crossings.record(tx, scope, await override(tx, ...parameters(scope, entries(limits))));
    },

    /** Sets counters to the usage of the rows. Only for the audit (audit.ts), which holds their locks. */
    async correct(tx: Tx, scope: QuotaScope, usages: Amounts): Promise<void> {
      await crossings.record(tx, scope, await correct(tx, ...parameters(scope, entries(usages))));
    },
  };
}

function entries<T>(map: Partial<Record<Kind, T>>): [Kind, T][] {
  return Object.entries(map) as [Kind, T][];
}

function quotaExceeded(figures: QuotaFigure[]): ClientError {
  const sentences = figures.map(
    ({ kind, limit, usage, requested }) =>
      `${kind} (${meaningOfKind[kind]}): limit ${limit}, in use ${usage}, requested ${requested}`,
  );
  return new ClientError('QuotaExceeded', `the quota would be exceeded: ${sentences.join('; ')}`, {
    errors: figures.map((figure, i) => ({ path: figure.kind, message: sentences[i]! })),
  });
}
