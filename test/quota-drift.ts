/** Parallel requests on a host that fails at random: what the tests of several quotas share. */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Db } from '../src/platform/db.ts';
import { retryNow } from './crash-harness.ts';
import { passing, terminal, type Trouble } from './drivers.ts';

/** The outcomes of the driver calls, repeated cyclically. */
export const outcomes = fc.array(fc.constantFrom('well', 'well', 'busy', 'busy, but done', 'full', 'full, but done'), {
  minLength: 1,
  maxLength: 12,
});

export function troubleOf(plan: string[]): () => Trouble {
  let calls = 0;
  return () => {
    const name = plan[calls++ % plan.length]!;
    if (name === 'well') return null;
    return { error: name.startsWith('busy') ? passing() : terminal(), done: name.endsWith('done') };
  };
}

/** Waits until no task is active and no job is left; retries skip their backoff. */
export async function untilIdle(db: Db): Promise<void> {
  await expect
    .poll(
      async () => {
        await retryNow(db);
        const { rows } = await db.$client.query(
          `select (select count(*) from tasks where state in ('NEW', 'RUNNING')) as tasks,
                  (select count(*) from jobs) as jobs`,
        );
        return rows[0];
      },
      { timeout: 60_000, interval: 20 },
    )
    .toEqual({ tasks: 0, jobs: 0 });
}

/** In every project and region, the count of the resource is the number of its rows. */
export async function expectRowCounts(db: Db, resource: string): Promise<void> {
  const { rows } = await db.$client.query(
    `select project_id, region_id, coalesce(c.count, 0) as counted, count(s.id) as rows
     from (select * from row_counts where resource = '${resource}') c
     full join ${resource}s s using (project_id, region_id) group by 1, 2, 3 having coalesce(c.count, 0) <> count(s.id)`,
  );
  expect(rows).toEqual([]);
}
