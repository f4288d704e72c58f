/** Makes a share real: reads its rows, has the driver apply what they say, and records what was observed. */
import type { FileShareDriver, ObservedFileShare } from '../../drivers/file-share.ts';
import { transaction } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { desiredFileShare, isLeaving } from './desired.ts';
import * as store from './store.ts';
import type { AccessRuleRow, FileShareRow } from './store.ts';

export interface FileShareReconcilerDeps {
  db: Db;
  tasks: Tasks;
  quota: Quota;
  driver: FileShareDriver;
}

export function createFileShareReconciler(deps: FileShareReconcilerDeps): Reconciler {
  const { db, driver } = deps;
  return {
    resource: 'file_share',

    async reconcile(id, signal, attempting): Promise<Outcome> {
      const share = await store.load(db, id);
      if (!share) return { kind: 'done' };
      attempting(share.generation);
      if (share.deletedAt) {
        await driver.remove(id, signal);
        await transaction(db, (tx) => recordRemoval(deps, tx, share));
        return { kind: 'done' };
      }
      const rules = await announceRuleChanges(db, id);
      const observed = await driver.apply(desiredFileShare(share, rules), signal);
      await transaction(db, (tx) => recordObserved(deps, tx, share, rules, observed));
      return { kind: 'done' };
    },

    recordFailure: (tx, id, generation) => recordFailure(deps, tx, id, generation),

    findPending: store.unconverged,

    async findDrift(_db, regionIds) {
      // What only pretends forgets at every restart: there is nothing to compare with.
      if (!driver.real) return [];
      // The host first: a share has its row before it is on the host, so what has no row afterwards never will.
      const onHost = new Set(await driver.list());
      const known = await store.known(db, [...onHost]);
      for (const id of onHost) if (!known.has(id)) await driver.quarantine(id);
      return (await store.available(db, regionIds)).filter((share) => !onHost.has(share.id));
    },
  };
}

/** Shows rules in transition as such, and returns all rules of the share. */
async function announceRuleChanges(db: Db, id: string): Promise<AccessRuleRow[]> {
  const rules = await store.accessRules(db, id);
  for (const rule of rules) {
    if (rule.state === 'queued_to_apply') await store.setAccessRuleState(db, rule.id, ['queued_to_apply'], 'applying');
    if (rule.state === 'queued_to_deny') await store.setAccessRuleState(db, rule.id, ['queued_to_deny'], 'denying');
  }
  return rules;
}

async function recordObserved(
  deps: FileShareReconcilerDeps,
  tx: Tx,
  share: FileShareRow,
  rules: AccessRuleRow[],
  observed: ObservedFileShare,
): Promise<void> {
  const current = await store.lock(tx, share.id);
  if (!current) return;
  for (const rule of rules) {
    if (isLeaving(rule)) await store.removeAccessRule(tx, rule.id);
    else if (rule.state !== 'active') await store.setAccessRuleState(tx, rule.id, ['applying', 'error'], 'active');
  }
  await store.update(tx, share.id, {
    connectionPoint: observed.connectionPoint,
    observedSize: observed.sizeGib,
    observedReal: current.observedReal || deps.driver.real,
    observedGeneration: share.generation,
    // A change that came meanwhile has set its own status, and its own job ends it.
    ...(current.generation === share.generation && { status: 'available' as const }),
  });
  await deps.tasks.finish(tx, share.id, share.generation);
}

async function recordRemoval(deps: FileShareReconcilerDeps, tx: Tx, share: FileShareRow): Promise<void> {
  const current = await store.lock(tx, share.id);
  if (!current) return;
  await store.remove(tx, current);
  await deps.tasks.finish(tx, share.id, current.generation);
  await deps.quota.release(tx, current, { sfs_count: 1, sfs_size: current.size });
}

/** A failed extension gives back what it had reserved; a share that failed otherwise keeps its quota until deleted. */
async function recordFailure(deps: FileShareReconcilerDeps, tx: Tx, id: string, generation: number): Promise<void> {
  const share = await store.lock(tx, id);
  if (!share || share.generation > generation) return;
  for (const rule of await store.accessRules(tx, id)) {
    await store.setAccessRuleState(tx, rule.id, ['applying', 'denying', 'queued_to_apply', 'queued_to_deny'], 'error');
  }
  const changes: Partial<FileShareRow> = { observedGeneration: share.generation };
  if (share.status === 'creating' || share.status === 'ensuring') changes.status = 'error';
  if (share.status === 'deleting') changes.status = 'error_deleting';
  if (share.status === 'extending') {
    changes.status = 'extending_error';
    changes.size = share.observedSize!;
    await deps.quota.release(tx, share, { sfs_size: share.size - share.observedSize! });
  }
  await store.update(tx, id, changes);
}
