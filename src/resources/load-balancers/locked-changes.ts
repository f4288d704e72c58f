/**
 * Changes of load balancers, listeners, pools, members, L7 policies and rules.
 *
 * Invariant: every change holds the lock of the load balancer's row from reading to commit. If the host must follow, the
 * change raises the generation and enqueues one task that waits for it.
 */
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError } from '../../errors/catalogue.ts';
import type { Tx } from '../../platform/db.ts';
import type { NewTask, ResourceKey } from '../../tasks/tasks.ts';
import { requireFound, requireUnlocked, type ServiceDeps, type TaskIds } from '../service-kit.ts';
import type { Locked, ProjectRegion } from '../store-kit.ts';
import { normalizeId } from './patch.ts';
import * as store from './store.ts';
import type { LoadBalancerRow } from './table.ts';

type ChangeTask = Pick<NewTask, 'type' | 'createdResources' | 'data' | 'id'>;

/** Tasks of these types do not lock each other out: they run in the order of their requests. */
export const queuedTasks = [
  'patch_lbpool',
  'create_lbmember',
  'update_lbmember',
  'delete_lbmember',
  'create_lbpool_health_monitor',
  'update_lbpool_health_monitor',
  'create_l7policy',
  'update_l7policy',
  'delete_l7policy',
  'create_l7rule',
  'put_l7rule',
  'delete_l7rule',
  // Of tasks that version 0.2.0 has left.
  'update_lbpool',
  'update_l7rule',
] as const;

export function createLoadBalancerChanges({ clock, tasks }: Pick<ServiceDeps, 'clock' | 'tasks'>) {
  return {
    /**
     * Locks the load balancer for this transaction. Active tasks of the types `concurrent` are allowed.
     * @throws ClientError 404, 409
     */
    async lock(tx: Tx, scope: Scope, id: string, concurrent?: readonly string[]) {
      const loadBalancer = requireFound(await store.lock(tx, scope, id, concurrent), 'load balancer', id);
      requireChangeable(loadBalancer);
      return loadBalancer;
    },

    /** Enqueues a change that the host must follow. */
    async enqueue(
      tx: Tx,
      context: RequestContext,
      loadBalancer: LoadBalancerRow,
      task: ChangeTask,
      changes: Partial<LoadBalancerRow> = {},
    ): Promise<TaskIds> {
      const generation = loadBalancer.generation + 1;
      await store.update(tx, loadBalancer.id, {
        provisioningStatus: 'PENDING_UPDATE',
        updatedAt: clock.now(),
        ...changes,
        generation,
      });
      const placed = { ...task, key: keyOf(loadBalancer), projectId: loadBalancer.projectId, generation };
      return { tasks: [await tasks.enqueue(tx, context, placed)] };
    },

    /** Records a task that is finished with the transaction. */
    async recordFinished(tx: Tx, context: RequestContext, loadBalancer: LoadBalancerRow, task: ChangeTask) {
      const { projectId, generation } = loadBalancer;
      const placed = { ...task, key: keyOf(loadBalancer), projectId, generation };
      return { tasks: [await tasks.recordFinished(tx, context, placed)] };
    },
  };
}

export type LoadBalancerChanges = ReturnType<typeof createLoadBalancerChanges>;

export function keyOf(loadBalancer: Pick<LoadBalancerRow, 'id' | 'regionId'>): ResourceKey {
  return { resource: 'load_balancer', id: loadBalancer.id, regionId: loadBalancer.regionId };
}

/** As `lock`, for a load balancer that the transaction has locked. @throws ClientError 409 */
export function requireChangeable(loadBalancer: Locked<LoadBalancerRow>): void {
  requireUnlocked(loadBalancer.lockedBy, 'load balancer', loadBalancer.id);
  requireNotDeleted(loadBalancer, 'load balancer');
}

/** For a row under the lock, which no deletion that is under way leaves free. @throws ClientError 409 after a failed deletion */
export function requireNotDeleted({ id, deletedAt }: { id: string; deletedAt: Date | null }, kind: string): void {
  if (deletedAt) throw new ClientError('Conflict', `the deletion of ${kind} ${id} failed; delete it again`);
}

const idNames = {
  listener: 'listener_id',
  pool: 'pool_id',
  'L7 policy': 'l7policy_id',
  'L7 rule': 'l7rule_id',
} as const;

interface PartRow {
  id: string;
  lockedBy: string | null;
  deletedAt: Date | null;
}

/** Locks the load balancer of a part; null if the part does not exist. */
type LockPart<Row> = (
  tx: Tx,
  scope: ProjectRegion,
  id: string,
  concurrent?: readonly string[],
) => Promise<{ loadBalancer: LoadBalancerRow; part: Row } | null>;

interface PartChangesDeps extends Pick<ServiceDeps, 'db' | 'idempotency'> {
  changes: LoadBalancerChanges;
}

/** Changes of one kind of part. */
export function createPartChanges<Row extends PartRow>(
  { db, idempotency, changes }: PartChangesDeps,
  kind: keyof typeof idNames,
  lockPart: LockPart<Row>,
) {
  const lockDeletable = async (tx: Tx, scope: Scope, id: string, concurrent?: readonly string[]) => {
    const locked = requireFound(await lockPart(tx, scope, id, concurrent), kind, id);
    requireUnlocked(locked.part.lockedBy, 'load balancer', locked.loadBalancer.id);
    requireNotDeleted(locked.loadBalancer, 'load balancer');
    // Refuses while the deletion, which may be one of `concurrent`, is under way.
    if (locked.part.deletedAt) await changes.lock(tx, scope, locked.loadBalancer.id);
    return locked;
  };
  const lock = async (tx: Tx, scope: Scope, id: string, concurrent?: readonly string[]) => {
    const locked = await lockDeletable(tx, scope, id, concurrent);
    requireNotDeleted(locked.part, kind);
    return locked;
  };
  /** Runs `write` under the lock. It returns the task of the change, which may be done, or null when nothing changes. */
  const withLock =
    (take: typeof lock, concurrent?: readonly string[]) =>
    (
      context: RequestContext,
      scope: Scope,
      id: string,
      write: (tx: Tx, part: Row) => Promise<(ChangeTask & { isDone?: boolean }) | null>,
    ): Promise<TaskIds> =>
      idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, part } = await take(tx, scope, id, concurrent);
        const written = await write(tx, part);
        if (!written) return { tasks: [] };
        const { isDone, ...task } = written;
        const add = isDone ? changes.recordFinished : changes.enqueue;
        return add(tx, context, loadBalancer, { ...task, data: { [idNames[kind]]: part.id, ...task.data } });
      });
  return {
    lock,
    change: withLock(lock),
    /** As `change`, while `queuedTasks` are active. */
    changeQueued: withLock(lock, queuedTasks),
    /** As `change`, also after a failed deletion. */
    remove: withLock(lockDeletable),
    removeQueued: withLock(lockDeletable, queuedTasks),
  };
}

/** Locks the load balancer that a body names in either spelling; null when it names none. Adds to `errors`. */
export async function lockNamedLoadBalancer(
  tx: Tx,
  scope: ProjectRegion,
  body: { load_balancer_id?: string | null; loadbalancer_id?: string | null },
  errors: FieldError[],
): Promise<{ id: string; loadBalancer: Locked<LoadBalancerRow> | null } | null> {
  const id = normalizeId(body.load_balancer_id);
  const alias = normalizeId(body.loadbalancer_id);
  if (id !== null && alias !== null && id !== alias) {
    errors.push({ path: 'loadbalancer_id', message: `conflicts with load_balancer_id (${id}); send only one` });
  }
  const named = id ?? alias;
  if (named === null) return null;
  const loadBalancer = await store.lock(tx, scope, named);
  if (!loadBalancer) {
    const path = id === null ? 'loadbalancer_id' : 'load_balancer_id';
    errors.push({ path, message: `load balancer ${named} not found in this project and region` });
  }
  return { id: named, loadBalancer };
}
