/**
 * What registries need of their host: removals, and a look at the storage from time to time, by which rows are corrected
 * and what nobody needs is freed.
 */
import type { AskForHold, RegistryDriver, RegistryHosting } from '../../drivers/registry.ts';
import { transaction } from '../../platform/db.ts';
import type { Db } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import * as contents from './contents/store.ts';
import * as store from './store.ts';
import type { RegistryRow } from './store.ts';

export interface RegistryReconcilerDeps {
  db: Db;
  quota: Quota;
  driver: RegistryDriver;
}

export function createRegistryReconciler({ db, quota, driver }: RegistryReconcilerDeps): Reconciler {
  const removeRegistry = async (registry: RegistryRow, signal: AbortSignal) => {
    await driver.remove(store.prefixOf(registry), signal);
    await transaction(db, async (tx) => {
      const current = await store.lock(tx, registry.id);
      if (!current) return;
      await store.remove(tx, current.id);
      await quota.release(tx, current, { registry_count: 1, registry_storage: current.storageLimit });
    });
  };

  return {
    resource: 'registry',

    async reconcile(id, signal): Promise<Outcome> {
      const registry = await store.load(db, Number(id));
      if (!registry) return { kind: 'done' };
      if (registry.deletedAt) {
        await removeRegistry(registry, signal);
        return { kind: 'done' };
      }
      for (const removal of await store.removals(db, registry.id)) {
        const { repository, digest, tag } = removal;
        await driver.removeContents({ prefix: store.prefixOf(registry), repository, digest, tag }, signal);
        await transaction(db, async (tx) => {
          await store.lock(tx, registry.id);
          await contents.forget(tx, registry.id, repository, digest, tag);
          await store.endRemoval(tx, removal.id);
        });
      }
      return { kind: 'done' };
    },

    // No task waits, and the row says what is still to do: it is tried again.
    recordFailure: async () => undefined,

    findPending: store.unconverged,

    async findDrift(_db, regionIds) {
      await store.setHosts(db, regionIds, driver.address);
      // The host first: a registry has its row before anybody can push to it.
      const onHost = await driver.list();
      const known = await store.known(db, onHost);
      for (const prefix of onHost) if (!known.has(prefix)) await driver.quarantine(prefix);
      return [];
    },
  };
}

export interface RegistryDutiesDeps {
  db: Db;
  driver: RegistryDriver;
  regionIds: number[];
  /** What the host must know now; null: nobody knows yet. */
  hosting(): Promise<RegistryHosting | null>;
  sweepSeconds: number;
  /** How long after somebody was let in to push a manifest may still come, seconds. */
  patience: number;
}

/** How long garbage collection may keep others from a repository; it needs moments. */
const holdSeconds = 10;
const configureSeconds = 2;
const uploadsSeconds = 2;

export function createRegistryDuties(
  deps: RegistryDutiesDeps,
): { seconds: number; work(signal: AbortSignal): Promise<unknown> }[] {
  const { db, driver, sweepSeconds } = deps;
  const countUploads = createUploadCount(deps);
  return [
    { seconds: configureSeconds, work: () => configure(deps) },
    { seconds: uploadsSeconds, work: countUploads },
    { seconds: sweepSeconds, work: (signal: AbortSignal) => look(deps, signal) },
    { seconds: 3600, work: () => contents.forgetEvents(db) },
    { seconds: 3600, work: () => store.forgetPushes(db) },
  ].filter(() => driver.real);
}

async function configure({ driver, hosting }: RegistryDutiesDeps): Promise<void> {
  const wanted = await hosting();
  if (wanted) await driver.configure(wanted);
}

/** Keeps the count of unfinished uploads in the rows, by which tokens are given. */
function createUploadCount({ db, driver, regionIds }: RegistryDutiesDeps): () => Promise<void> {
  let counted: Map<number, number> | null = null;
  return async () => {
    const found = await driver.idleUploads();
    counted ??= await contents.uploadsCounted(db, regionIds);
    const known = await store.known(db, [...found.keys()]);
    const now = new Map([...known].map(([prefix, id]) => [id, found.get(prefix)!]));
    for (const id of new Set([...counted.keys(), ...now.keys()])) {
      const bytes = now.get(id) ?? 0;
      if (counted.get(id) === bytes) continue;
      await transaction(db, async (tx) => {
        if (await store.lock(tx, id)) await contents.putUploads(tx, id, bytes);
      });
      if (bytes > 0) counted.set(id, bytes);
      else counted.delete(id);
    }
  };
}

/** Looks at all that the host has stored, frees what it can, and corrects the rows. */
async function look({ db, driver, patience }: RegistryDutiesDeps, signal: AbortSignal): Promise<void> {
  const began = await contents.now(db);
  const ask: AskForHold = async (prefix, repository) => {
    const until = new Date(Date.now() + holdSeconds * 1000 - 1000);
    const id = (await store.known(db, [prefix])).get(prefix);
    if (id === undefined || !(await store.holdPushes(db, id, repository, patience, holdSeconds))) return null;
    return { until, release: () => store.letPush(db, id, repository) };
  };
  const found = await driver.collect(ask, signal);
  if (!found) return;
  const known = await store.known(
    db,
    found.map(({ prefix }) => prefix),
  );
  const failures: unknown[] = [];
  for (const each of found) {
    const id = known.get(each.prefix);
    if (id === undefined) continue;
    // What one registry holds must not keep the others from being looked at.
    await transaction(db, async (tx) => {
      const registry = await store.lock(tx, id);
      if (registry) await contents.putSeen(tx, registry, each, began);
    }).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}
