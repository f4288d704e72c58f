/**
 * Removes tasks that ended long ago. A task that has not ended is never removed, whatever its age.
 *
 * Batches are small, so that a batch holds its locks and its transaction for milliseconds; they follow the index of the
 * tasks of a client, whose oldest rows are at its start.
 */
import { deleteInBatches } from '../platform/batches.ts';
import { type Db, preparedValue } from '../platform/db.ts';

const batch = 500;

const removeBatch = preparedValue<number, [before: Date], Db>(
  'task_remove_old',
  `with old as (
     select t.id from clients c cross join lateral (
       select id from tasks where client_id = c.id and created_on < $1 and state in ('FINISHED', 'ERROR') and finished_on < $1
       order by created_on, id limit ${batch}
     ) as t limit ${batch}
   ), removed as (
     delete from tasks where id in (select id from old) and state in ('FINISHED', 'ERROR') returning 1
   ) select count(*)::int as count from removed`,
);

/** Removes tasks that ended before this time, in batches, until none remains or `signal` aborts. Returns their number. */
export function removeEndedTasks(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  return deleteInBatches(() => removeBatch(db, before), signal);
}
