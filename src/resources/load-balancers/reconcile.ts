/** Makes a load balancer real with all its listeners and pools, and keeps their operating statuses true. */
import type { LoadBalancerDriver, LoadBalancerReading } from '../../drivers/load-balancer.ts';
import { DriverError } from '../../errors/driver-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { transaction } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { desiredLoadBalancer, secretsOf, statusChanges } from './desired.ts';
import type { Pems } from './desired.ts';
import * as store from './store.ts';
import type { LoadBalancerRow, StatusChanges, WholeLoadBalancer } from './store.ts';
import * as traffic from './traffic/store.ts';

export interface LoadBalancerReconcilerDeps {
  db: Db;
  tasks: Tasks;
  quota: Quota;
  driver: LoadBalancerDriver;
  /** The PEM texts of secrets, decrypted. */
  pemOf(on: Db | Tx, secretIds: string[]): Promise<Pems>;
}

export function createLoadBalancerReconciler(deps: LoadBalancerReconcilerDeps): Reconciler {
  const { db, driver } = deps;
  return {
    resource: 'load_balancer',

    async reconcile(id, signal, attempting): Promise<Outcome> {
      const found = await transaction(db, (tx) => readAll(deps, tx, id));
      if (!found) return { kind: 'done' };
      const { whole, pems } = found;
      attempting(whole.loadBalancer.generation);
      if (whole.loadBalancer.deletedAt) {
        await driver.remove(id, signal);
        await transaction(db, (tx) => recordRemoval(deps, tx, whole.loadBalancer));
        return { kind: 'done' };
      }
      await driver.apply(desiredLoadBalancer(whole, pems), signal);
      await transaction(db, (tx) => recordObserved(deps, tx, whole));
      return { kind: 'done' };
    },

    recordFailure: (tx, id, generation) => recordFailure(tx, id, generation),

    findPending: store.unconverged,

    async findDrift(_db, regionIds) {
      await driver.recheckMembers();
      if (!driver.real) return [];
      // The host first: a load balancer has its row before it is on the host.
      const onHost = await driver.list();
      const known = await store.known(db, onHost);
      for (const id of onHost) if (!known.has(id)) await driver.quarantine(id);
      return (await store.active(db, regionIds)).filter((found) => !onHost.includes(found.id));
    },
  };
}

/** Rows and secrets of one moment: a secret may go as soon as no row names it any more. */
async function readAll(
  { pemOf }: LoadBalancerReconcilerDeps,
  tx: Tx,
  id: string,
): Promise<{ whole: WholeLoadBalancer; pems: Pems } | null> {
  await store.readOneMoment(tx);
  const whole = await store.loadWhole(tx, id);
  if (!whole) return null;
  // What goes needs no secrets.
  return { whole, pems: whole.loadBalancer.deletedAt ? new Map() : await pemOf(tx, secretsOf(whole)) };
}

async function recordObserved(deps: LoadBalancerReconcilerDeps, tx: Tx, whole: WholeLoadBalancer): Promise<void> {
  const { id, generation } = whole.loadBalancer;
  const current = await store.lock(tx, id);
  if (!current) return;
  await store.removeDeletedParts(tx, whole);
  // A change that came meanwhile has set its own statuses, and its own job ends them.
  const converged = current.generation === generation;
  if (converged) await store.markActive(tx, id);
  await store.update(tx, id, {
    observedGeneration: generation,
    ...(converged && { provisioningStatus: 'ACTIVE' as const }),
  });
  await deps.tasks.finish(tx, id, generation);
}

async function recordRemoval(deps: LoadBalancerReconcilerDeps, tx: Tx, removed: LoadBalancerRow): Promise<void> {
  const current = await store.lock(tx, removed.id);
  if (!current) return;
  await store.remove(tx, current.id);
  await deps.tasks.finish(tx, current.id, current.generation);
  await deps.quota.release(tx, current, { loadbalancer_count: 1 });
}

/** What failed stays as it was asked for, and can be changed or deleted by its owner: nothing is left pending. */
async function recordFailure(tx: Tx, id: string, generation: number): Promise<void> {
  const current = await store.lock(tx, id);
  if (!current || current.generation > generation) return;
  await store.markFailed(tx, id);
  await store.update(tx, id, { observedGeneration: current.generation, provisioningStatus: 'ERROR' });
}

export interface LoadBalancerDutiesDeps {
  db: Db;
  clock: Clock;
  driver: LoadBalancerDriver;
  regionIds: number[];
}

/** What keeps rows true to what the proxy sees, from time to time. */
export function createLoadBalancerDuties(deps: LoadBalancerDutiesDeps): { seconds: number; work(): Promise<void> }[] {
  return [
    { seconds: 1, work: createStatusRecorder(deps) },
    { seconds: 10, work: createTrafficRecorder(deps) },
    { seconds: 3600, work: () => traffic.forget(deps.db, deps.clock.now()) },
  ];
}

/** After this long without an answer the proxy is taken to be down, and what it served with it. */
const silenceMs = 1500;
/** Looks after which everything is compared, also what seems not to have changed. */
const looksUntilAll = 60;

/**
 * One look at what the proxy sees; writes the statuses that changed, and nothing when none did. Of load balancers whose
 * rows and health are as at the look before not even the rows are read: a region has thousands of members.
 */
export function createStatusRecorder({ db, driver, regionIds }: Omit<LoadBalancerDutiesDeps, 'clock'>) {
  const seen = new Map<string, string>();
  let looks = 0;
  let heardAt = performance.now();

  const look = async (): Promise<LoadBalancerReading[] | null> => {
    try {
      const readings = await driver.read();
      heardAt = performance.now();
      return readings;
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      // What the driver's own status says need not be said each second here.
      return performance.now() - heardAt < silenceMs ? null : [];
    }
  };

  return async (): Promise<void> => {
    const versions = await store.versions(db, regionIds);
    if (versions.size === 0) {
      heardAt = performance.now();
      return seen.clear();
    }
    const found = await look();
    if (!found) return;
    if (looks++ % looksUntilAll === 0) seen.clear();
    const readings = new Map(found.map((reading) => [reading.id, reading]));
    const marks = [...versions].map(([id, version]) => [id, `${version} ${healthOf(readings.get(id))}`] as const);
    const changed = marks.filter(([id, mark]) => seen.get(id) !== mark);
    for (const id of seen.keys()) if (!versions.has(id)) seen.delete(id);
    if (changed.length === 0) return;
    const wholes = await store.wholesById(
      db,
      changed.map(([id]) => id),
    );
    const changes = allChanges(wholes.map((whole) => statusChanges(whole, readings.get(whole.loadBalancer.id))));
    if (changes) await transaction(db, (tx) => store.writeStatuses(tx, changes));
    for (const [id, mark] of changed) seen.set(id, mark);
  };
}

/** Everything of a reading that a status depends on. */
function healthOf(reading: LoadBalancerReading | undefined): string {
  if (!reading) return '';
  return `${[...reading.members].join(' ')} ${[...reading.listeners.keys()].join(' ')}`;
}

/** All of them as one; null when there are none. */
function allChanges(found: StatusChanges[]): StatusChanges | null {
  const all: StatusChanges = {
    loadBalancers: new Map(found.flatMap((changes) => [...changes.loadBalancers])),
    listeners: new Map(found.flatMap((changes) => [...changes.listeners])),
    pools: new Map(found.flatMap((changes) => [...changes.pools])),
    members: new Map(found.flatMap((changes) => [...changes.members])),
  };
  return Object.values(all).some((changes) => changes.size > 0) ? all : null;
}

/** Adds up what goes through listeners; listeners whose counters stand still are not written. */
export function createTrafficRecorder({ db, clock, driver }: Omit<LoadBalancerDutiesDeps, 'regionIds'>) {
  let written = new Map<string, string>();
  return async (): Promise<void> => {
    const found = await driver.read().catch((error: unknown) => {
      if (error instanceof DriverError) return null;
      throw error;
    });
    if (!found) return;
    const readings = found.flatMap((reading) =>
      [...reading.listeners].map(([listenerId, counters]) => ({ listenerId, ...counters })),
    );
    const now = new Map(readings.map((reading) => [reading.listenerId, Object.values(reading).join(' ')]));
    const changed = readings.filter(({ listenerId }) => written.get(listenerId) !== now.get(listenerId));
    if (changed.length > 0) await traffic.addReadings(db, changed, clock.now());
    written = now;
  };
}
