/** Removes old notifications with their deliveries, in small batches. A notification with a pending delivery stays. */
import { deleteInBatches } from '../../platform/batches.ts';
import { type Db, preparedValue } from '../../platform/db.ts';

const batch = 500;

const removeBatch = preparedValue<number, [before: Date], Db>(
  'notification_remove_old',
  `with old as (
     select n.id from clients c cross join lateral (
       select id from notifications n where client_id = c.id and created_at < $1 and not exists
         (select from notification_deliveries d where d.notification_id = n.id and d.state = 'pending')
       order by created_at, id limit ${batch}
     ) as n limit ${batch}
   ), removed as (
     delete from notifications where id in (select id from old) returning 1
   ) select count(*)::int as count from removed`,
);

/** Removes notifications that were created before this time, until none remains or `signal` aborts. Returns their number. */
export function removeOldNotifications(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  return deleteInBatches(() => removeBatch(db, before), signal);
}
