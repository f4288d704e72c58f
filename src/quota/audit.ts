/**
 * The quota audit compares the counters with the rows that they count.
 *
 * Each resource declares the usage of its rows as SQL (`UsageOfRows`). The comparison is one statement, so it sees one
 * instant even while servers run. A repair locks the counters that differ and then counts again: every transaction that
 * changes rows also changes their counter, so it has either committed and is counted, or it waits for the counter and then
 * adds to the repaired value.
 */
import { columnsOf, type Db, transaction, type Tx } from '../platform/db.ts';
import type { Kind } from './kinds.ts';
import type { Quota } from './quota.ts';

/** SQL: the usage of the rows of one resource, as (client_id, region_id, kind, amount); a kind may be in many rows. */
export type UsageOfRows = string;

/** A counter that differs from the rows. */
export interface Drift {
  clientId: number;
  regionId: number;
  kind: Kind;
  counted: number;
  inRows: number;
}

export type QuotaAudit = ReturnType<typeof createQuotaAudit>;

/** `resources`: the SQL of each resource that counts its rows. */
export function createQuotaAudit(db: Db, quota: Quota, resources: UsageOfRows[]) {
  const used = `select client_id, region_id, kind, sum(amount)::bigint as amount
    from (${resources.join('\nunion all\n')}) as rows (client_id, region_id, kind, amount)
    group by client_id, region_id, kind`;

  const find = async (on: Db | Tx): Promise<Drift[]> => {
    const { rows } = await on.$client.query<Drift>(
      `select client_id as "clientId", region_id as "regionId", kind,
              coalesce(c.usage, 0) as counted, coalesce(u.amount, 0) as "inRows"
       from quota_counters c full join (${used}) u using (client_id, region_id, kind)
       where coalesce(c.usage, 0) <> coalesce(u.amount, 0)
       order by client_id, region_id, kind collate "C"`,
    );
    return rows;
  };

  return {
    /** The counters that differ from the rows, as of one instant. */
    find: () => find(db),

    /** Repairs those counters, even while servers run, and returns them as they were. */
    async repair(): Promise<Drift[]> {
      const suspects = await find(db);
      if (suspects.length === 0) return [];
      return transaction(db, async (tx) => {
        await lock(tx, suspects);
        const isLocked = new Set(suspects.map(keyOf));
        const drifted = (await find(tx)).filter((drift) => isLocked.has(keyOf(drift)));
        for (const drift of drifted) await quota.correct(tx, drift, { [drift.kind]: drift.inRows });
        return drifted;
      });
    },
  };
}

/** Locks the counters in the order that all transactions use. A missing counter is inserted, so that it can be locked. */
async function lock(tx: Tx, counters: Drift[]): Promise<void> {
  const values = [...columnsOf(counters, 'clientId', 'regionId', 'kind')];
  const given = 'unnest($1::int[], $2::int[], $3::text[]) as g (client_id, region_id, kind)';
  await tx.$client.query(
    `insert into quota_counters (client_id, region_id, kind) select * from ${given}
     order by 1, 2, 3 on conflict do nothing`,
    values,
  );
  await tx.$client.query(
    `select from quota_counters join ${given} using (client_id, region_id, kind)
     order by client_id, region_id, kind for update of quota_counters`,
    values,
  );
}

function keyOf({ clientId, regionId, kind }: Drift): string {
  return `${clientId} ${regionId} ${kind}`;
}
