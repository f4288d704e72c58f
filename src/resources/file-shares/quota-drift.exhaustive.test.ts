/** Random parallel requests through the API, on a host that fails at random: counters must match the rows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drift, truthOfShares } from '../../../test/crash-harness.ts';
import { createTestHost } from '../../../test/drivers.ts';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { expectRowCounts, outcomes, troubleOf, untilIdle } from '../../../test/quota-drift.ts';

const host = createTestHost();
const cloud = useCloudyard({ driver: host });
const limits = { sfs_count_limit: 5, sfs_size_limit: 12 };

type Command =
  | { kind: 'create'; size: number; rules: number }
  | { kind: 'extend'; pick: number; by: number }
  | { kind: 'delete'; pick: number }
  | { kind: 'tag'; pick: number; value: string }
  | { kind: 'settings'; pick: number; squash: boolean }
  | { kind: 'rule'; pick: number; host: number };

const pick = fc.nat({ max: 20 });
const kind = <K extends Command['kind']>(name: K) => fc.constant(name);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: kind('create'), size: fc.integer({ min: 1, max: 4 }), rules: fc.nat({ max: 2 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: kind('extend'), pick, by: fc.integer({ min: -1, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('delete'), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: kind('tag'), pick, value: fc.string({ maxLength: 3, unit: 'grapheme-ascii' }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('settings'), pick, squash: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('rule'), pick, host: fc.integer({ min: 1, max: 3 }) }) },
);

interface Tenant {
  clientId: number;
  path: string;
  token: string;
  network_id: string;
}

async function tenant(): Promise<Tenant> {
  const { clientId, projectId, token } = await cloud.newClient();
  await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, { region_id: 1, ...limits });
  const { body } = await cloud.get(`/cloud/v1/networks/${projectId}/1`, { token });
  return { clientId, token, path: `/cloud/v1/file_shares/${projectId}/1`, network_id: body.results[0].id };
}

async function sharesOf({ path, token }: Tenant): Promise<{ id: string; size: number }[]> {
  return (await cloud.get(path, { token })).body.results;
}

async function run(of: Tenant, given: Command, shares: { id: string; size: number }[]): Promise<Answer | null> {
  const { path, token } = of;
  if (given.kind === 'create') {
    const access = Array.from({ length: given.rules }, (_, i) => ({
      access_mode: 'rw',
      ip_address: `10.0.0.${i + 1}`,
    }));
    const network = { network_id: of.network_id };
    return cloud.post(path, { name: 'a share', protocol: 'NFS', size: given.size, network, access }, { token });
  }
  const share = shares[given.pick % Math.max(shares.length, 1)];
  if (!share) return null;
  const one = `${path}/${share.id}`;
  switch (given.kind) {
    case 'extend':
      return cloud.post(`${one}/extend`, { size: Math.max(1, share.size + given.by) }, { token });
    case 'delete':
      return cloud.delete(one, { token });
    case 'tag':
      return cloud.patch(one, { tags: { key: given.value } }, { token });
    case 'settings':
      return cloud.patch(one.replace('/v1/', '/v3/'), { share_settings: { root_squash: given.squash } }, { token });
    case 'rule':
      return cloud.post(`${one}/access_rule`, { access_mode: 'ro', ip_address: `10.1.0.${given.host}` }, { token });
  }
}

/** Each check is one statement, so that it holds at every instant. */
async function expectNoDrift(of: Tenant): Promise<void> {
  expect(await drift(cloud.db, truthOfShares)).toEqual([]);
  await expectRowCounts(cloud.db, 'file_share');
  const { body } = await cloud.get(`/cloud/v2/regional_quotas/${of.clientId}/1`, { token: of.token });
  expect(body.sfs_count_usage).toBeLessThanOrEqual(limits.sfs_count_limit);
  expect(body.sfs_size_usage).toBeLessThanOrEqual(limits.sfs_size_limit);
}

/** In an idle system, the usage that the client sees is the sum of its shares. */
async function expectUsageAsListed(of: Tenant): Promise<void> {
  const { body } = await cloud.get(`/cloud/v2/regional_quotas/${of.clientId}/1`, { token: of.token });
  const shares = await sharesOf(of);
  const size = shares.reduce((sum, share) => sum + share.size, 0);
  expect([body.sfs_count_usage, body.sfs_size_usage]).toEqual([shares.length, size]);
}

describe('the quota of file shares', () => {
  it('matches the rows after parallel requests and host errors, is never exceeded, and is released when everything is deleted', async () => {
    const settled = new Set(['available', 'error', 'extending_error', 'error_deleting']);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(command, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 }),
        outcomes,
        async (batches, plan) => {
          host.trouble(troubleOf(plan));
          const of = await tenant();
          for (const batch of batches) {
            const shares = await sharesOf(of);
            const answers = await Promise.all(batch.map((given) => run(of, given, shares)));
            for (const answer of answers) {
              if (answer) expect([200, 204, 400, 404, 409]).toContain(answer.status);
            }
            await expectNoDrift(of);
          }
          await untilIdle(cloud.db);
          await expectNoDrift(of);
          await expectUsageAsListed(of);
          for (const share of (await cloud.get(of.path, { token: of.token })).body.results) {
            expect(settled).toContain(share.status);
            expect(share.task_id).toBe(null);
          }

          host.trouble();
          for (const { id } of await sharesOf(of)) {
            expect((await cloud.delete(`${of.path}/${id}`, { token: of.token })).status).toBe(200);
          }
          await untilIdle(cloud.db);
          await expectNoDrift(of);
          await expectUsageAsListed(of);
          expect(await sharesOf(of)).toEqual([]);
          expect([...host.shares.keys()]).toEqual([]);
          expect(host.overlap).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 30, endOnFailure: true },
    );
  }, 180_000);
});
