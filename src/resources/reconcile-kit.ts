/** Shared by all reconcilers: comparison of a host with its rows, and recording of removals. */
import type { Db, Tx } from '../platform/db.ts';
import { groupedTransaction } from '../platform/group-commit.ts';
import type { Logger } from '../platform/log.ts';
import type { Kind } from '../quota/kinds.ts';
import type { Quota } from '../quota/quota.ts';
import type { Placed, Tasks } from '../tasks/tasks.ts';
import { RowChanged } from './store-kit.ts';

export interface ReconcilerDeps {
  db: Db;
  tasks: Tasks;
  quota: Quota;
}

/** A driver's report on all resources of its host. */
interface Inventory {
  /** False: simulated. A simulated host forgets everything at a restart, so there is nothing to compare. */
  real: boolean;
  list(): Promise<Iterable<string>>;
  findDamaged?(): Promise<Iterable<string>>;
  quarantine(id: string): Promise<void>;
}

/** The queries of a store that a comparison with the host needs. */
interface DriftQueries {
  findKnown(db: Db, ids: string[]): Promise<Set<string>>;
  findExpected(db: Db, regionIds: number[]): Promise<(Placed & { onHost: boolean })[]>;
}

/**
 * Compares the host with the rows: quarantines resources without a row, and returns the rows whose expected presence on
 * the host differs from the actual one, or that are damaged there.
 *
 * The host is read first: a resource has its row before it is on the host, so one without a row never gets a row.
 */
export async function findDrift(
  db: Db,
  store: DriftQueries,
  driver: Inventory,
  regionIds: number[],
  log: Logger,
): Promise<Placed[]> {
  if (!driver.real) return [];
  const onHost = new Set(await driver.list());
  const known = await store.findKnown(db, [...onHost]);
  for (const id of onHost) if (!known.has(id)) await driver.quarantine(id);
  const expected = await store.findExpected(db, regionIds);
  const damaged = new Set(
    await driver.findDamaged?.().catch((error: unknown) => {
      log.warn({ err: error }, 'cannot find damaged resources');
      return [];
    }),
  );
  return expected.filter((row) => row.onHost !== onHost.has(row.id) || (row.onHost && damaged.has(row.id)));
}

interface ReconciledRow {
  id: string;
  clientId: number;
  projectId: number;
  regionId: number;
  generation: number;
}

/**
 * Records what the host has of a generation, and ends the tasks that wait for it. `write` only defers writes, so this is one
 * statement, for concurrent reconciles of the same kind together.
 */
export function recordObserved(
  { db, tasks }: Pick<ReconcilerDeps, 'db' | 'tasks'>,
  { id, generation }: ReconciledRow,
  write: (tx: Tx) => Promise<void>,
): Promise<void> {
  return groupedTransaction(db, { group: '', id }, async (tx) => {
    await write(tx);
    await tasks.finish(tx, id, generation);
  });
}

/**
 * Removes the row of a resource that left its host, ends the tasks that wait for it, and releases its quota. `remove` defers
 * the removal of this generation (`remove` of `reconciledRows`): if the row has changed since it was read, nothing is
 * recorded, because the change has a job of its own. Removals of a project and region share the counters that they lock.
 */
export async function recordRemoval<Row extends ReconciledRow>(
  { db, tasks, quota }: ReconcilerDeps,
  row: Row,
  remove: (tx: Tx, row: Row) => Promise<void>,
  amounts: Partial<Record<Kind, number>>,
): Promise<void> {
  const { id, projectId, regionId, generation } = row;
  try {
    await groupedTransaction(db, { group: `${projectId} ${regionId}`, id }, async (tx) => {
      await remove(tx, row);
      await tasks.finish(tx, id, generation);
      await quota.release(tx, row, amounts);
    });
  } catch (error) {
    if (!(error instanceof RowChanged)) throw error;
  }
}
