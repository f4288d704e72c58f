/** Compares the counters with a model: a scratch table whose rows use two kinds of quota each. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { ClientError } from '../errors/catalogue.ts';
import { transaction, type Tx } from '../platform/db.ts';
import type { QuotaScope } from './quota.ts';

const cloud = useCloudyard({ driver: null, audit: false });
const region = 1;
let nextClient = 1000;

beforeAll(async () => {
  await cloud.db.$client.query('create table scratch (id uuid primary key, client_id int not null, size int not null)');
});

/** Counters and rows of a client at one instant: one statement is one snapshot. */
interface Snapshot {
  count: number;
  size: number;
  rows: number;
  sum: number;
}

async function snapshot(clientId: number): Promise<Snapshot> {
  const { rows } = await cloud.db.$client.query<Snapshot>(
    `select coalesce(max(usage) filter (where kind = 'volume_count'), 0) as count,
            coalesce(max(usage) filter (where kind = 'volume_size'), 0) as size,
            (select count(*) from scratch where client_id = $1) as rows,
            (select coalesce(sum(size), 0) from scratch where client_id = $1) as sum
     from quota_counters where client_id = $1 and region_id = $2`,
    [clientId, region],
  );
  return rows[0]!;
}

async function limited(volume_count: number, volume_size: number): Promise<QuotaScope> {
  const scope = { clientId: nextClient++, regionId: region };
  await transaction(cloud.db, (tx) => cloud.services.quota.setLimits(tx, scope, { volume_count, volume_size }));
  return scope;
}

const insert = (tx: Tx, clientId: number, size: number, id = randomUUID()) =>
  tx.$client.query('insert into scratch values ($1, $2, $3)', [id, clientId, size]);

function create(scope: QuotaScope, size: number): Promise<void> {
  return transaction(cloud.db, async (tx) => {
    await insert(tx, scope.clientId, size);
    await cloud.services.quota.reserve(tx, scope, { volume_count: 1, volume_size: size });
  });
}

/** Thrown before the commit, like a process that is killed there. */
class Crash extends Error {}

type Step =
  | { kind: 'create'; size: number; crash: boolean }
  | { kind: 'resize'; pick: number; size: number; crash: boolean }
  | { kind: 'delete'; pick: number; crash: boolean };

const crash = fc.boolean();
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('create' as const), size: fc.integer({ min: 1, max: 6 }), crash }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('resize' as const),
      pick: fc.nat(),
      size: fc.integer({ min: 1, max: 8 }),
      crash,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), pick: fc.nat(), crash }) },
);

/** One transaction of one actor. A refusal by the quota and a crash are expected. */
async function act(scope: QuotaScope, given: Step): Promise<void> {
  const { quota } = cloud.services;
  await transaction(cloud.db, async (tx) => {
    if (given.kind === 'create') {
      await insert(tx, scope.clientId, given.size);
      await quota.reserve(tx, scope, { volume_count: 1, volume_size: given.size });
    } else {
      const { rows } = await tx.$client.query<{ id: string; size: number }>(
        `select id, size from scratch where client_id = $1 order by id for update`,
        [scope.clientId],
      );
      const row = rows[given.pick % Math.max(rows.length, 1)];
      if (!row) return;
      if (given.kind === 'delete') {
        await tx.$client.query('delete from scratch where id = $1', [row.id]);
        await quota.release(tx, scope, { volume_count: 1, volume_size: row.size });
      } else {
        await tx.$client.query('update scratch set size = $2 where id = $1', [row.id, given.size]);
        const growth = given.size - row.size;
        if (growth > 0) await quota.reserve(tx, scope, { volume_size: growth });
        if (growth < 0) await quota.release(tx, scope, { volume_size: -growth });
      }
    }
    if (given.crash) throw new Crash();
  }).catch((error: unknown) => {
    const refused = error instanceof ClientError && error.code === 'QuotaExceeded';
    if (!refused && !(error instanceof Crash)) throw error;
  });
}

describe('the counters', () => {
  it('match the rows and stay within the limits at every instant, with concurrent actors and crashes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 6 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 15 }),
        async (actors, maxCount, maxSize) => {
          const scope = await limited(maxCount, maxSize);
          let acting = true;
          const watch = async () => {
            do {
              const seen = await snapshot(scope.clientId);
              expect([seen.count, seen.size]).toEqual([seen.rows, seen.sum]);
              expect(seen.count).toBeLessThanOrEqual(maxCount);
              expect(seen.size).toBeLessThanOrEqual(maxSize);
            } while (acting);
          };
          const work = async (steps: Step[]) => {
            for (const one of steps) await act(scope, one);
          };
          const watching = watch();
          await Promise.all(actors.map(work)).finally(() => (acting = false));
          await watching;
          const end = await snapshot(scope.clientId);
          expect([end.count, end.size]).toEqual([end.rows, end.sum]);
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
  });

  it('admit exactly as many of fifty concurrent requests as fit', async () => {
    const scope = await limited(10, 1000);
    const results = await Promise.allSettled(Array.from({ length: 50 }, () => create(scope, 3)));
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(10);
    expect(await snapshot(scope.clientId)).toEqual({ count: 10, size: 30, rows: 10, sum: 30 });
  });

  it('never keep a part of a reservation of two kinds', async () => {
    const scope = await limited(5, 10);
    await create(scope, 8);
    await expect(create(scope, 3)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    expect(await snapshot(scope.clientId)).toEqual({ count: 1, size: 8, rows: 1, sum: 8 });
    // The same where one of the two has no counter yet.
    const fresh = { clientId: nextClient++, regionId: region };
    await transaction(cloud.db, (tx) => cloud.services.quota.setLimits(tx, fresh, { volume_size: 2 }));
    await expect(create(fresh, 3)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    expect(await snapshot(fresh.clientId)).toEqual({ count: 0, size: 0, rows: 0, sum: 0 });
  });

  it('make released quota available to other requests', async () => {
    const scope = await limited(1, 5);
    const row = randomUUID();
    await transaction(cloud.db, async (tx) => {
      await insert(tx, scope.clientId, 5, row);
      await cloud.services.quota.reserve(tx, scope, { volume_count: 1, volume_size: 5 });
    });
    await expect(create(scope, 1)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    await transaction(cloud.db, async (tx) => {
      await tx.$client.query('delete from scratch where id = $1', [row]);
      await cloud.services.quota.release(tx, scope, { volume_count: 1, volume_size: 5 });
    });
    await create(scope, 5);
    expect(await snapshot(scope.clientId)).toEqual({ count: 1, size: 5, rows: 1, sum: 5 });
  });

  it('cannot go below zero: a release without a reservation fails and changes nothing', async () => {
    const scope = await limited(5, 5);
    await create(scope, 2);
    const tooMuch = transaction(cloud.db, (tx) =>
      cloud.services.quota.release(tx, scope, { volume_count: 1, volume_size: 3 }),
    );
    await expect(tooMuch).rejects.toThrow();
    expect(await snapshot(scope.clientId)).toEqual({ count: 1, size: 2, rows: 1, sum: 2 });
  });

  it('are separate for each client and region', async () => {
    const one = await limited(1, 5);
    const other = await limited(1, 5);
    const elsewhere = { ...one, regionId: 2 };
    await create(one, 5);
    await create(other, 5);
    await transaction(cloud.db, (tx) => cloud.services.quota.reserve(tx, elsewhere, { volume_count: 7 }));
    expect(await snapshot(one.clientId)).toEqual({ count: 1, size: 5, rows: 1, sum: 5 });
    expect(await cloud.services.quota.figures(cloud.db, elsewhere, ['volume_count'])).toMatchObject([{ usage: 7 }]);
  });
});

describe('a limit', () => {
  it('below the usage prevents growth and nothing else', async () => {
    const { quota } = cloud.services;
    const scope = await limited(10, 100);
    for (let i = 0; i < 5; i++) await create(scope, 10);
    await transaction(cloud.db, (tx) => quota.setLimits(tx, scope, { volume_count: 2, volume_size: 20 }));
    expect(await snapshot(scope.clientId)).toEqual({ count: 5, size: 50, rows: 5, sum: 50 });
    await expect(create(scope, 1)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    const remove = (rows: number) =>
      transaction(cloud.db, async (tx) => {
        await tx.$client.query(
          'delete from scratch where id in (select id from scratch where client_id = $1 limit $2)',
          [scope.clientId, rows],
        );
        await quota.release(tx, scope, { volume_count: rows, volume_size: 10 * rows });
      });
    await remove(2);
    expect(await snapshot(scope.clientId)).toEqual({ count: 3, size: 30, rows: 3, sum: 30 });
    await expect(create(scope, 1)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    await remove(2);
    await create(scope, 10);
    expect(await snapshot(scope.clientId)).toEqual({ count: 2, size: 20, rows: 2, sum: 20 });
  });

  it('returns to the default when the override is removed', async () => {
    const { quota } = cloud.services;
    const scope = await limited(0, 0);
    const [fallback] = await quota.figures(cloud.db, { clientId: nextClient++, regionId: region }, ['volume_count']);
    await expect(create(scope, 1)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    await transaction(cloud.db, (tx) => quota.setLimits(tx, scope, { volume_count: null, volume_size: null }));
    await create(scope, 1);
    expect(await quota.figures(cloud.db, scope, ['volume_count'])).toEqual([{ ...fallback, usage: 1 }]);
  });

  it('of zero admits nothing, and a request for nothing is always admitted', async () => {
    const scope = await limited(0, 0);
    await expect(create(scope, 1)).rejects.toMatchObject({ code: 'QuotaExceeded' });
    await transaction(cloud.db, (tx) => cloud.services.quota.reserve(tx, scope, { volume_count: 0 }));
    await transaction(cloud.db, (tx) => cloud.services.quota.reserve(tx, scope, {}));
    expect(await snapshot(scope.clientId)).toMatchObject({ count: 0, size: 0 });
  });
});

describe('a refusal', () => {
  const refused = (scope: QuotaScope, size: number) =>
    create(scope, size).then(
      () => expect.unreachable('it was admitted'),
      (error: unknown) => error as ClientError,
    );

  it('is a 409 that is not retried, with limit, usage and request of the kinds that do not fit', async () => {
    const scope = await limited(10, 20);
    await create(scope, 15);
    const error = await refused(scope, 6);
    expect(error).toMatchObject({ code: 'QuotaExceeded', status: 409, headers: { 'x-should-retry': 'false' } });
    expect(error.message).toContain('volume_size (volumes size, GiB): limit 20, in use 15, requested 6');
    expect(error.message).not.toContain('volume_count');
    expect(error.errors).toEqual([{ path: 'volume_size', message: expect.stringContaining('limit 20, in use 15') }]);
  });

  it('names every kind that does not fit', async () => {
    const scope = await limited(1, 5);
    await create(scope, 5);
    expect((await refused(scope, 6)).errors.map((e) => e.path)).toEqual(['volume_count', 'volume_size']);
    const never = await limited(5, 5);
    expect((await refused(never, 6)).errors).toEqual([
      { path: 'volume_size', message: 'volume_size (volumes size, GiB): limit 5, in use 0, requested 6' },
    ]);
  });

  it('is predicted by `exceeded`, which changes nothing', async () => {
    const { quota } = cloud.services;
    const scope = await limited(1, 5);
    await create(scope, 3);
    const before = await snapshot(scope.clientId);
    expect(await quota.exceeded(cloud.db, scope, { volume_count: 1, volume_size: 2 })).toEqual([
      { kind: 'volume_count', limit: 1, usage: 1, requested: 1 },
    ]);
    expect(await quota.exceeded(cloud.db, scope, { volume_size: 2 })).toEqual([]);
    expect(await snapshot(scope.clientId)).toEqual(before);
  });
});
