/** SQL of the operations on tasks: reads and acknowledgements. The engine in src/tasks does all other writes. */
import { and, asc, desc, gte, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm';
import type { Actor } from '../../authz/actor.ts';
import { type Db, preparedColumn, type Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { tasks, type TaskState } from '../../tasks/table.ts';
import * as kit from '../store-kit.ts';

export type TaskRow = typeof tasks.$inferSelect;

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
  page: kit.PageQuery;
}

const readRow = kit.rowById<TaskRow>(tasks);

export async function find(on: Db | Tx, { clientId, projectIds }: kit.Visible, id: string): Promise<TaskRow | null> {
  const task = await readRow(on, id);
  if (task?.clientId !== clientId) return null;
  return projectIds === null || (task.projectId !== null && projectIds.includes(task.projectId)) ? task : null;
}

const bytes = sql<number>`coalesce(pg_column_size(${tasks.createdResources}), 0) + coalesce(pg_column_size(${tasks.data}), 0)`;

const readSizes = kit.pageReader<SizedRow<string>>(tasks, { columns: { id: tasks.id, bytes } });

/** A task may name a thousand resources, so the rows are read separately. */
export async function list(db: Db, visible: kit.Visible, filter: TaskFilter): Promise<kit.Found<SizedRow<string>>> {
  const where = and(
    kit.isVisible(tasks, visible),
    filter.from && gte(tasks.createdOn, filter.from),
    filter.to && lte(tasks.createdOn, filter.to),
    filter.acknowledged === undefined
      ? undefined
      : filter.acknowledged
        ? isNotNull(tasks.acknowledgedAt)
        : isNull(tasks.acknowledgedAt),
    kit.isAnyOf(tasks.projectId, filter.projectIds),
    kit.isAnyOf(tasks.regionId, filter.regionIds),
    filter.states && inArray(tasks.state, filter.states),
    filter.types && inArray(tasks.taskType, filter.types),
    kit.equals(tasks.resourceId, filter.resourceId?.toLowerCase()),
  );
  const order = filter.order === 'asc' ? asc : desc;
  return readSizes(db, { where, order: [order(tasks.createdOn), order(tasks.id)], page: filter.page });
}

export const findRows = kit.rowsByIds<TaskRow>(tasks);

/** Acknowledges tasks that the actor sees and that are not yet acknowledged. */
export async function acknowledge(
  tx: Tx,
  actor: Actor,
  which: { ids?: string[]; projectId?: number; regionId?: number },
  at: Date,
): Promise<void> {
  await tx
    .update(tasks)
    .set({ acknowledgedAt: at, acknowledgedBy: actor.tokenId })
    .where(
      and(
        kit.isVisible(tasks, actor),
        isNull(tasks.acknowledgedAt),
        which.ids && inArray(tasks.id, which.ids),
        kit.equalsInteger(tasks.projectId, which.projectId),
        kit.equalsInteger(tasks.regionId, which.regionId),
      ),
    );
}

/** The tasks among the ids that have ended. */
export const findEnded = preparedColumn<string, [ids: string[]], Db>(
  'tasks_ended',
  `select id from tasks where id = any($1::uuid[]) and state in ('FINISHED', 'ERROR')`,
);
