/** SQL of projects. */
import { and, eq, inArray, isNull } from 'drizzle-orm';
import { type Db, preparedValue, type Tx } from '../../platform/db.ts';
import { globalRegion } from '../../quota/kinds.ts';
import * as kit from '../store-kit.ts';
import type { ListProjects } from './schema.ts';
import { projects } from './table.ts';

export type ProjectRow = typeof projects.$inferSelect;
export type NewProject = Pick<ProjectRow, 'clientId' | 'name' | 'description' | 'isDefault' | 'createdAt'>;

const readClient = preparedValue<number | undefined>(
  'project_client',
  'select client_id from projects where id = $1 and deleted_at is null',
);

/** The client of a project that is not deleted. */
export async function findClient(db: Db, id: number): Promise<number | null> {
  return (await readClient(db, id)) ?? null;
}

export async function insert(tx: Tx, project: NewProject): Promise<ProjectRow> {
  const [row] = await tx.insert(projects).values(project).returning();
  return row!;
}

const isLive = (id: number) => and(eq(projects.id, id), isNull(projects.deletedAt));

export const find = kit.rowById<ProjectRow>(projects, { condition: isNull(projects.deletedAt) });

/** Locks the row. Transactions that insert rows of the project, such as networks, wait for the lock. */
export function lock(tx: Tx, id: number): Promise<ProjectRow | null> {
  return kit.firstRow(tx.select().from(projects).where(isLive(id)).for('update'));
}

export function update(tx: Tx, id: number, changes: Partial<ProjectRow>): Promise<ProjectRow | null> {
  return kit.firstRow(tx.update(projects).set(changes).where(isLive(id)).returning());
}

const orders = kit.ordersOf(projects.id, { created_at: projects.createdAt, name: kit.bytewise(projects.name) });

const readPage = kit.pageReader<ProjectRow>(projects);

/** The client's projects, only those in `visible` unless that is null. */
export async function list(
  db: Db,
  clientId: number,
  visible: number[] | null,
  filter: ListProjects,
): Promise<kit.Found<ProjectRow>> {
  const where = and(
    eq(projects.clientId, clientId),
    kit.equalsInteger(projects.clientId, filter.client_id),
    visible ? inArray(projects.id, visible) : undefined,
    filter.include_deleted ? undefined : isNull(projects.deletedAt),
    kit.contains(projects.name, filter.name),
  );
  return readPage(db, { where, order: orders[filter.order_by ?? 'created_at.desc'], page: filter });
}

/** The quota that the rows use (quota/audit.ts). */
export const usageOfRows = `
  select client_id, ${globalRegion}, 'project_count', count(*) from projects where deleted_at is null group by 1`;
