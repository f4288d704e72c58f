/** Deferred writes: when they are sent, and what their errors leave behind. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { transaction } from './db.ts';

const cloud = useCloudyard({ driver: null, audit: false });
let nextClient = 700_000_000;

const usageOf = async (on: Pick<typeof cloud.db.$client, 'query'>, clientId: number) => {
  const { rows } = await on.query(`select usage from quota_counters where client_id = $1 and kind = 'volume_count'`, [
    clientId,
  ]);
  return rows[0]?.usage ?? 0;
};

it('a deferred write is seen by the next statement of its transaction, and by others after the commit', async () => {
  const scope = { clientId: nextClient++, regionId: 1 };
  await transaction(cloud.db, async (tx) => {
    await cloud.services.quota.reserve(tx, scope, { volume_count: 2 });
    expect(await usageOf(tx.$client as typeof cloud.db.$client, scope.clientId)).toBe(2);
    expect(await usageOf(cloud.db.$client, scope.clientId)).toBe(0);
  });
  expect(await usageOf(cloud.db.$client, scope.clientId)).toBe(2);
});

it('a refused write takes the other writes of its transaction with it', async () => {
  const scope = { clientId: nextClient++, regionId: 1 };
  const { quota } = cloud.services;
  await transaction(cloud.db, (tx) => quota.setLimits(tx, scope, { volume_size: 1 }));
  const refused = transaction(cloud.db, async (tx) => {
    await quota.reserve(tx, scope, { volume_count: 1 });
    await quota.reserve(tx, scope, { volume_size: 2 });
  });
  await expect(refused).rejects.toMatchObject({ code: 'QuotaExceeded' });
  expect(await usageOf(cloud.db.$client, scope.clientId)).toBe(0);
});

it('a write that was sent is rolled back when the work fails', async () => {
  const scope = { clientId: nextClient++, regionId: 1 };
  await expect(
    transaction(cloud.db, async (tx) => {
      await cloud.services.quota.reserve(tx, scope, { volume_count: 1 });
      await tx.sendPending();
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  expect(await usageOf(cloud.db.$client, scope.clientId)).toBe(0);
});
