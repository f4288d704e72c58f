/** Fails every statement and driver call of the registry reconciler once; the desired state must still be reached. */
import { afterEach, describe, expect, it } from 'vitest';
import { type CrashCase, crashEverywhere, drift } from '../../../test/crash-harness.ts';
import { useCloudyard } from '../../../test/harness.ts';
import type { RegistryDriver } from '../../drivers/registry.ts';
import { createSimulatedRegistryDriver } from '../../drivers/simulated/registry.ts';
import { transaction } from '../../platform/db.ts';
import * as contents from './contents/store.ts';
import { createRegistryReconciler } from './reconcile.ts';
import * as store from './store.ts';

const cloud = useCloudyard({ driver: null });
const truth = {
  registry_count: 'select client_id, region_id, count(*) as amount from registries group by 1, 2',
  registry_storage: 'select client_id, region_id, sum(storage_limit) as amount from registries group by 1, 2',
};
const digest = `sha256:${'a'.repeat(64)}`;
/** The removals that the driver was called for, by prefix. */
const removed = new Map<string, Set<string>>();
const recordRemoval = (prefix: string, what: string) =>
  removed.set(prefix, (removed.get(prefix) ?? new Set()).add(what));
const host: RegistryDriver = {
  ...createSimulatedRegistryDriver(),
  removeContents: async ({ prefix, repository, tag }) => void recordRemoval(prefix, `${repository} ${tag}`),
  remove: async (prefix) => void recordRemoval(prefix, 'all'),
};
let made = 0;

const reconciler: CrashCase<RegistryDriver>['reconciler'] = (db, driver) =>
  createRegistryReconciler({ ...cloud.services, db, driver });

async function arrange(change: (id: number) => Promise<void>): Promise<string> {
  await store.setHosts(cloud.db, [1], host.address);
  const { body } = await cloud.post('/cloud/v1/registries/1/1', { name: `crash-${(made += 1)}`, storage_limit: 3 });
  await transaction(cloud.db, async (tx) => {
    for (const repository of ['a', 'b']) {
      const pushed = { repository, digest, size: 5, tag: 'v1', at: cloud.clock.now() };
      await contents.putManifest(tx, body.id, pushed);
    }
  });
  await change(body.id);
  return String(body.id);
}

const prefixOf = (id: string) => [...removed.keys()].find((prefix) => prefix.endsWith(`-${id}`)) ?? '';
const pending = async (id: string) => (await store.findPending(cloud.db, [1])).some((each) => each.id === id);
const repositories = async (id: string) =>
  (await contents.listRepositories(cloud.db, Number(id), {})).rows.map(
    ({ name, artifactCount }) => `${name} ${artifactCount}`,
  );
const crash = (arranged: () => Promise<string>, check: (id: string) => Promise<void>) =>
  crashEverywhere({
    ...{ db: cloud.db, tasks: cloud.services.tasks, driver: host, reconciler, check },
    arrange: async () => {
      // High limits, so that rows of earlier rounds do not exhaust the quota.
      await cloud.services.quota.setLimits(
        cloud.db as never,
        { clientId: 1, regionId: 1 },
        {
          registry_count: 10_000,
          registry_storage: 100_000,
        },
      );
      return arranged();
    },
  });

afterEach(async () => expect(await drift(cloud.db, truth)).toEqual([]));

describe('a crash at any step', () => {
  it('of content removal leaves no removal pending', async () => {
    const removal = (registryId: number, repository: string, of: string | null, tag: string | null) => (tx: never) =>
      store.insertRemoval(tx, { id: crypto.randomUUID(), registryId, repository, digest: of, tag });
    const arranged = () =>
      arrange(async (id) => {
        for (const each of [removal(id, 'a', null, null), removal(id, 'b', digest, 'v1')]) {
          await transaction(cloud.db, (tx) => each(tx as never));
        }
      });
    const figures = await crash(arranged, async (id) => {
      expect([await pending(id), await repositories(id)]).toEqual([false, ['b 1']]);
      expect([...removed.get(prefixOf(id))!].sort()).toEqual(['a null', 'b v1']);
    });
    expect(figures.injected).toBeGreaterThan(20);
  });

  it('of a deletion removes the row and releases the quota once', async () => {
    const arranged = () =>
      arrange((id) => transaction(cloud.db, (tx) => store.update(tx, id, { deletedAt: cloud.clock.now() })));
    const figures = await crash(arranged, async (id) => {
      expect([await pending(id), await store.findById(cloud.db, Number(id))]).toEqual([false, null]);
      expect([...removed.get(prefixOf(id))!]).toEqual(['all']);
      expect(await drift(cloud.db, truth)).toEqual([]);
    });
    expect(figures.injected).toBeGreaterThan(10);
  });
});
