/** One schedule of a policy as a resource of its own. Changes hold the lock of the policy. */
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { type FieldError, invalidInput } from '../../../errors/catalogue.ts';
import type { ValidFields } from '../../../errors/valid-fields.ts';
import { wholeSecond } from '../../../platform/clock.ts';
import { isEmpty, requireFound, type ServiceDeps } from '../../service-kit.ts';
import { scheduleExpiry } from '../retention/store.ts';
import {
  checkSchedule,
  errorsOfPatch,
  isSameSchedule,
  isSameTiming,
  patchedSchedule,
  toSchedule,
} from '../schedule-rules.ts';
import type { Schedule, UpdateSchedule } from './schema.ts';
import * as store from '../store.ts';
import type { PolicyRow, ScheduleRow } from '../store.ts';

export type LifecyclePolicySchedules = ReturnType<typeof createLifecyclePolicySchedules>;

export function createLifecyclePolicySchedules({
  db,
  clock,
  idempotency,
}: Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'>) {
  /** The columns that a patch changes. @throws ClientError 400 with all errors */
  const changesOf = (schedule: ScheduleRow, policy: PolicyRow, body: UpdateSchedule): Partial<ScheduleRow> => {
    const given = patchedSchedule(schedule.given, body);
    const now = clock.now();
    const isRetimed = !isSameTiming(schedule.given, given);
    // A changed interval starts now: measured from the creation, it could run at once.
    const createdAt = isRetimed ? wholeSecond(now) : schedule.createdAt;
    const checked = checkSchedule(given, createdAt, '');
    if ('errors' in checked) throw invalidInput(checked.errors);
    if (isSameSchedule(schedule.given, given)) return {};
    const { retentionSeconds, times } = checked;
    if (!isRetimed) return { given, retentionSeconds };
    return { given, retentionSeconds, createdAt, nextRunAt: policy.status === 'active' ? times.next(now) : null };
  };

  const find = async (on: Parameters<typeof store.findSchedule>[0], scope: Scope, id: string): Promise<ScheduleRow> =>
    requireFound(await store.findSchedule(on, scope, id), 'schedule', id);

  return {
    /** For an invalid body. */
    bodyErrors: (body: ValidFields<UpdateSchedule>): FieldError[] => errorsOfPatch(body, wholeSecond(clock.now())),

    async get(scope: Scope, id: string): Promise<Schedule> {
      return toSchedule(await find(db, scope, id));
    },

    update: (context: RequestContext, scope: Scope, id: string, body: UpdateSchedule): Promise<Schedule> =>
      idempotency.auditedTransaction(db, context, async (tx) => {
        const { policyId } = await find(tx, scope, id);
        const policy = requireFound(await store.lock(tx, scope, policyId), 'schedule', id);
        // Again: the previous holder of the lock may have changed or removed it.
        const schedule = await find(tx, scope, id);
        const changes = changesOf(schedule, policy, body);
        if (!isEmpty(changes)) {
          await store.updateSchedule(tx, id, changes);
          await scheduleExpiry(tx, policyId);
        }
        return toSchedule({ ...schedule, ...changes });
      }),
  };
}
