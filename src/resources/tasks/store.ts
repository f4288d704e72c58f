/** SQL of the operations on tasks: reads and acknowledgements. The engine in src/tasks does all other writes. */
import { and, asc, desc, eq, gte, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { preparedColumn } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { tasks } from '../../tasks/table.ts';
import type { TaskState } from '../../tasks/table.ts';
import * as kit from '../store-kit.ts';

export type TaskRow = typeof tasks.$inferSelect;

/** The tasks that an actor sees: those of its client, in all or some projects. */
export interface Visible {
  clientId: number;
  projectIds: number[] | null;
}

interface TaskFilter {
  from?: Date;
  to?: Date;
  acknowledged?: boolean;
  projectIds?: number[];
  regionIds?: number[];
  states?: TaskState[];
  types?: string[];
  resourceId?: string;
  order: 'asc' | 'desc';
  page: { limit?: number; offset?: number };
}

const visible = (who: Visible): SQL | undefined =>
  and(eq(tasks.clientId, who.clientId), who.projectIds ? inArray(tasks.projectId, who.projectIds) : undefined);

const readRow = kit.rowById<TaskRow>(tasks);

export async function find(on: Db | Tx, { clientId, projectIds }: Visible, id: string): Promise<TaskRow | null> {
  const task = await readRow(on, id);
  if (task?.clientId !== clientId) return null;
  return projectIds === null || (task.projectId !== null && projectIds.includes(task.projectId)) ? task : null;
}

const bytes = sql<number>`coalesce(pg_column_size(${tasks.createdResources}), 0) + coalesce(pg_column_size(${tasks.data}), 0)`;

const readSizes = kit.pageReader<SizedRow<string>>(tasks, { columns: { id: tasks.id, bytes } });

/** A task may name a thousand resources, so the rows are read separately. */
export async function list(db: Db, who: Visible, filter: TaskFilter): Promise<kit.Found<SizedRow<string>>> {
  const where = and(
    visible(who),
    filter.from && gte(tasks.createdOn, filter.from),
    filter.to && lte(tasks.createdOn, filter.to),
    filter.acknowledged === undefined
      ? undefined
      : filter.acknowledged
        ? isNotNull(tasks.acknowledgedAt)
        : isNull(tasks.acknowledgedAt),
    filter.projectIds && inArray(tasks.projectId, filter.projectIds),
    filter.regionIds && inArray(tasks.regionId, filter.regionIds),
    filter.states && inArray(tasks.state, filter.states),
    filter.types && inArray(tasks.taskType, filter.types),
    filter.resourceId === undefined ? undefined : eq(tasks.resourceId, filter.resourceId),
  );
  const order = filter.order === 'asc' ? asc : desc;
  return readSizes(db, { where, order: [order(tasks.createdOn), order(tasks.id)], page: filter.page });
}

export const findRows = kit.rowsByIds<TaskRow>(tasks);

/** Acknowledges tasks that are not yet acknowledged. */
export async function acknowledge(
  tx: Tx,
  who: Visible,
  which: { ids?: string[]; projectId?: number; regionId?: number },
  by: number,
  at: Date,
): Promise<void> {
  await tx
    .update(tasks)
    .set({ acknowledgedAt: at, acknowledgedBy: by })
    .where(
      and(
        visible(who),
        isNull(tasks.acknowledgedAt),
        which.ids && inArray(tasks.id, which.ids),
        which.projectId === undefined ? undefined : eq(tasks.projectId, which.projectId),
        which.regionId === undefined ? undefined : eq(tasks.regionId, which.regionId),
      ),
    );
}

/** The tasks among the ids that have ended. */
export const findEnded = preparedColumn<string, [ids: string[]], Db>(
  'tasks_ended',
  `select id from tasks where id = any($1::uuid[]) and state in ('FINISHED', 'ERROR')`,
);
