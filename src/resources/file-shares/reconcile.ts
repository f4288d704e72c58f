/** Reconciles a share: reads its rows, has the driver apply them to the host, and records what was observed. */
import type { FileShareDriver, ObservedFileShare } from '../../drivers/file-share.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import { findDrift, type ReconcilerDeps, recordObserved, recordRemoval } from '../reconcile-kit.ts';
import { desiredFileShare, isDenied } from './desired.ts';
import * as store from './store.ts';
import type { FileShareRow, ReconciledRule } from './store.ts';

interface FileShareReconcilerDeps extends ReconcilerDeps {
  driver: FileShareDriver;
}

export function createFileShareReconciler(deps: FileShareReconcilerDeps): Reconciler {
  const { db, driver } = deps;
  return {
    resource: 'file_share',

    async reconcile(id, signal, noteGeneration): Promise<Outcome> {
      const share = await store.load(db, id);
      if (!share) return { kind: 'done' };
      noteGeneration(share.generation);
      if (share.deletedAt) {
        await driver.remove(id, signal);
        await recordRemoval(deps, share, store.remove, { sfs_count: 1, sfs_size: share.size });
        return { kind: 'done' };
      }
      const { rules } = share;
      await announceRuleChanges(db, rules);
      const observed = await driver.apply(desiredFileShare(share, rules), signal);
      await recordObserved(deps, share, (tx) => writeObserved(tx, share, rules, observed, driver.real));
      return { kind: 'done' };
    },

    recordFailure: (tx, id, generation) => recordFailure(deps, tx, id, generation),

    findPending: store.findPending,

    findDrift: (db, regionIds, log) => findDrift(db, store, driver, regionIds, log),
  };
}

/** Records the used space of shares. Unchanged values are not written. */
export function createUsageRecorder({ db, driver }: { db: Db; driver: FileShareDriver }) {
  let written = new Map<string, string>();
  return async (): Promise<void> => {
    const found = await driver.usage();
    const now = new Map([...found].map(([id, usage]) => [id, Object.values(usage).join(' ')]));
    const changed = [...found].filter(([id]) => written.get(id) !== now.get(id));
    const usages = changed.map(([fileShareId, usage]) => ({ fileShareId, ...usage }));
    await store.recordUsage(db, usages);
    written = now;
  };
}

/** Before the driver runs, so that clients see which queued rules are being applied. */
async function announceRuleChanges(db: Db, rules: ReconciledRule[]): Promise<void> {
  const queued = rules.filter((rule) => rule.state === 'queued_to_apply' || rule.state === 'queued_to_deny');
  await store.changeAccessRuleStates(db, queued, { queued_to_apply: 'applying', queued_to_deny: 'denying' });
}

async function writeObserved(
  tx: Tx,
  { id, generation }: FileShareRow,
  rules: ReconciledRule[],
  { connectionPoint, sizeGib }: ObservedFileShare,
  isReal: boolean,
): Promise<void> {
  await store.removeAccessRules(tx, rules.filter(isDenied));
  const applied = rules.filter((rule) => !isDenied(rule) && rule.state !== 'active');
  await store.changeAccessRuleStates(tx, applied, { applying: 'active', error: 'active' });
  await store.recordObserved(tx, id, generation, connectionPoint, sizeGib, isReal);
}

/** A failed extension releases its reservation; a share that failed otherwise keeps its quota until it is deleted. */
async function recordFailure(deps: FileShareReconcilerDeps, tx: Tx, id: string, generation: number): Promise<void> {
  const share = await store.lockById(tx, id);
  if (!share || share.generation > generation) return;
  await store.changeAccessRuleStates(tx, await store.accessRules(tx, id), {
    applying: 'error',
    denying: 'error',
    queued_to_apply: 'error',
    queued_to_deny: 'error',
  });
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
