/** Reconciles registries: removals, and periodic scans of the storage that correct the rows and free unused data. */
import type { RequestHold, RegistryDriver, RegistryHosting } from '../../drivers/registry.ts';
import { type Db, transaction } from '../../platform/db.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import * as contents from './contents/store.ts';
import * as store from './store.ts';
import type { RegistryRow } from './store.ts';
import type { Duty } from '../../tasks/duties.ts';

interface RegistryReconcilerDeps extends Pick<ReconcilerDeps, 'db' | 'quota'> {
  driver: RegistryDriver;
}

export function createRegistryReconciler({ db, quota, driver }: RegistryReconcilerDeps): Reconciler {
  const removeRegistry = async (registry: RegistryRow, signal: AbortSignal) => {
    await driver.remove(store.prefixOf(registry), signal);
    await transaction(db, async (tx) => {
      const current = await store.lockById(tx, registry.id);
      if (!current) return;
      await store.remove(tx, current.id);
      await quota.release(tx, current, { registry_count: 1, registry_storage: current.storageLimit });
    });
  };

  return {
    resource: 'registry',

    async reconcile(id, signal): Promise<Outcome> {
      const registry = await store.findById(db, Number(id));
      if (!registry) return { kind: 'done' };
      if (registry.deletedAt) {
        await removeRegistry(registry, signal);
        return { kind: 'done' };
      }
      for (const removal of await store.findRemovals(db, registry.id)) {
        const { repository, digest, tag } = removal;
        await driver.removeContents({ prefix: store.prefixOf(registry), repository, digest, tag }, signal);
        await transaction(db, async (tx) => {
          await store.lockById(tx, registry.id);
          await contents.remove(tx, registry.id, repository, digest, tag);
          await contents.noteRemoval(tx, registry.id, repository, digest, tag);
          await store.removeRemoval(tx, removal.id);
        });
      }
      return { kind: 'done' };
    },

    // No task waits for it, and the row stays pending, so it is retried.
    recordFailure: async () => undefined,

    findPending: store.findPending,

    async findDrift(db, regionIds) {
      await store.setHosts(db, regionIds, driver.address);
      // The host is read first: a registry has its row before clients can push to it.
      const onHost = await driver.list();
      const known = await store.findKnown(db, onHost);
      for (const prefix of onHost) if (!known.has(prefix)) await driver.quarantine(prefix);
      return [];
    },
  };
}

interface RegistryDutiesDeps {
  db: Db;
  driver: RegistryDriver;
  regionIds: number[];
  /** The configuration of the host; null until an API server has announced itself. */
  hosting(): Promise<RegistryHosting | null>;
  sweepSeconds: number;
  /** Units: seconds. A client may still push a manifest for this time after its push was allowed. */
  patience: number;
}

/** Garbage collection blocks pushes to a repository for at most this time. */
const holdSeconds = 10;
const configureSeconds = 2;
const uploadsSeconds = 2;

export function createRegistryDuties(deps: RegistryDutiesDeps): Duty[] {
  const { db, driver, sweepSeconds } = deps;
  const countUploads = createUploadCounter(deps);
  return [
    { seconds: configureSeconds, work: () => configure(deps) },
    { seconds: uploadsSeconds, work: countUploads },
    { seconds: sweepSeconds, work: (signal: AbortSignal) => scan(deps, signal) },
    { seconds: 3600, work: () => contents.deleteOldEvents(db) },
    { seconds: 3600, work: () => store.deleteOldPushes(db) },
  ].filter(() => driver.real);
}

async function configure({ driver, hosting }: RegistryDutiesDeps): Promise<void> {
  const configuration = await hosting();
  if (configuration) await driver.configure(configuration);
}

/** Records the bytes of abandoned uploads, which count against the storage limit. */
function createUploadCounter({ db, driver, regionIds }: RegistryDutiesDeps): () => Promise<void> {
  let counted: Map<number, number> | null = null;
  return async () => {
    const found = await driver.idleUploads();
    counted ??= await contents.findUploads(db, regionIds);
    const known = await store.findKnown(db, [...found.keys()]);
    const now = new Map([...known].map(([prefix, id]) => [id, found.get(prefix)!]));
    for (const id of new Set([...counted.keys(), ...now.keys()])) {
      const bytes = now.get(id) ?? 0;
      if (counted.get(id) === bytes) continue;
      await transaction(db, async (tx) => {
        if (await store.lockById(tx, id)) await contents.putUploads(tx, id, bytes);
      });
      if (bytes > 0) counted.set(id, bytes);
      else counted.delete(id);
    }
  };
}

/** Scans the storage of the host, frees unused data, and corrects the rows. */
async function scan({ db, driver, patience }: RegistryDutiesDeps, signal: AbortSignal): Promise<void> {
  const began = await contents.now(db);
  const requestHold: RequestHold = async (prefix, repository) => {
    const until = new Date(Date.now() + holdSeconds * 1000 - 1000);
    const id = (await store.findKnown(db, [prefix])).get(prefix);
    if (id === undefined || !(await store.holdPushes(db, id, repository, patience, holdSeconds))) return null;
    return { until, release: () => store.releasePushes(db, id, repository) };
  };
  const found = await driver.collect(requestHold, signal);
  if (!found) return;
  const known = await store.findKnown(
    db,
    found.map(({ prefix }) => prefix),
  );
  const failures: unknown[] = [];
  for (const each of found) {
    const id = known.get(each.prefix);
    if (id === undefined) continue;
    // A registry that fails must not block the others.
    await transaction(db, async (tx) => {
      const registry = await store.lockById(tx, id);
      if (registry) await contents.putScan(tx, registry, each, began);
    }).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}
