/** Shared by all reconcilers: comparison of a host with its rows, and recording of removals. */
import { transaction } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import type { Kind } from '../quota/kinds.ts';
import type { Quota } from '../quota/quota.ts';
import type { Placed, Tasks } from '../tasks/tasks.ts';

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
  quarantine(id: string): Promise<void>;
}

/** The queries of a store that a comparison with the host needs. */
interface DriftQueries {
  findKnown(db: Db, ids: string[]): Promise<Set<string>>;
  findExpected(db: Db, regionIds: number[]): Promise<(Placed & { onHost: boolean })[]>;
}

/**
 * Compares the host with the rows: quarantines resources without a row, and returns the rows whose expected presence on
 * the host differs from the actual one.
 *
 * The host is read first: a resource has its row before it is on the host, so one without a row never gets a row.
 */
export async function findDrift(
  db: Db,
  store: DriftQueries,
  driver: Inventory,
  regionIds: number[],
): Promise<Placed[]> {
  if (!driver.real) return [];
  const onHost = new Set(await driver.list());
  const known = await store.findKnown(db, [...onHost]);
  for (const id of onHost) if (!known.has(id)) await driver.quarantine(id);
  const expected = await store.findExpected(db, regionIds);
  return expected.filter((row) => row.onHost !== onHost.has(row.id));
}

/**
 * Records what the host has of a generation, and ends the tasks that wait for it. `write` only defers writes, so this is one
 * statement.
 */
export function recordObserved(
  { db, tasks }: Pick<ReconcilerDeps, 'db' | 'tasks'>,
  id: string,
  generation: number,
  write: (tx: Tx) => Promise<void>,
): Promise<void> {
  return transaction(db, async (tx) => {
    await write(tx);
    await tasks.finish(tx, id, generation);
  });
}

interface RemovableRow {
  id: string;
  clientId: number;
  regionId: number;
  generation: number;
}

/** Removes the row of a resource that left its host, ends the tasks that wait for it, and releases its quota. */
export async function recordRemoval<Row extends RemovableRow>(
  { tasks, quota }: Pick<ReconcilerDeps, 'tasks' | 'quota'>,
  tx: Tx,
  row: Row | null,
  remove: (tx: Tx, row: Row) => Promise<void>,
  amounts: (row: Row) => Partial<Record<Kind, number>>,
): Promise<void> {
  if (!row) return;
  await remove(tx, row);
  await tasks.finish(tx, row.id, row.generation);
  await quota.release(tx, row, amounts(row));
}
