/** Reconciles a load balancer with its listeners, pools and members. */
import type { LoadBalancerDriver } from '../../drivers/load-balancer.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import { findDrift, type ReconcilerDeps, recordObserved, recordRemoval } from '../reconcile-kit.ts';
import { desiredLoadBalancer, type Pems, secretsOf } from './desired.ts';
import * as store from './store.ts';
import type { WholeLoadBalancer } from './store.ts';

interface LoadBalancerReconcilerDeps extends ReconcilerDeps {
  driver: LoadBalancerDriver;
  /** The decrypted PEM texts of secrets. */
  pemOf(on: Db | Tx, secretIds: string[]): Promise<Pems>;
}

export function createLoadBalancerReconciler(deps: LoadBalancerReconcilerDeps): Reconciler {
  const { driver } = deps;
  return {
    resource: 'load_balancer',

    async reconcile(id, signal, noteGeneration): Promise<Outcome> {
      const found = await read(deps, id);
      if (!found) return { kind: 'done' };
      const { whole, pems } = found;
      noteGeneration(whole.loadBalancer.generation);
      if (whole.loadBalancer.deletedAt) {
        await driver.remove(id, signal);
        await recordRemoval(deps, whole.loadBalancer, store.remove, { loadbalancer_count: 1 });
        return { kind: 'done' };
      }
      await driver.apply(desiredLoadBalancer(whole, pems), signal);
      await recordObserved(deps, whole.loadBalancer, (tx) => store.recordObserved(tx, whole));
      return { kind: 'done' };
    },

    recordFailure,

    findPending: store.findPending,

    async findDrift(db, regionIds, log) {
      await driver.recheckMembers();
      // Also a simulated host, which forgets everything at a restart: its statuses of members are shown.
      const { list, findDamaged, quarantine } = driver;
      return findDrift(db, store, { real: true, list, findDamaged, quarantine }, regionIds, log);
    },
  };
}

/**
 * Reads the rows, and then the secrets that they use. A secret can be deleted as soon as no row uses it, so if one is
 * missing, the rows are read again until they no longer change.
 */
async function read(
  { db, pemOf }: LoadBalancerReconcilerDeps,
  id: string,
): Promise<{ whole: WholeLoadBalancer; pems: Pems } | null> {
  for (let last = -1; ; ) {
    const whole = await store.loadWhole(db, id);
    if (!whole) return null;
    const { deletedAt, generation } = whole.loadBalancer;
    // A deletion needs no secrets.
    const needed = deletedAt ? [] : secretsOf(whole);
    const pems = await pemOf(db, needed);
    if (generation === last || needed.every((secretId) => pems.has(secretId))) return { whole, pems };
    last = generation;
  }
}

/** The rows keep the requested settings, so that the owner can change or delete the load balancer. */
async function recordFailure(tx: Tx, id: string, generation: number): Promise<void> {
  const current = await store.lockById(tx, id);
  if (!current || current.generation > generation) return;
  await store.markFailed(tx, id);
  await store.update(tx, id, { observedGeneration: current.generation, provisioningStatus: 'ERROR' });
}
