/** The operations of one schedule of a lifecycle policy. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { operationsOf, type OperationTag } from '../../../http/operations.ts';
import { IdOf } from '../../../http/path-parameters.ts';
import { Schedule, UpdateSchedule } from './schema.ts';
import type { LifecyclePolicySchedules } from './service.ts';

const path = '/cloud/v1/schedule/:project_id/:region_id/:schedule_id';

/** `tag` is that of the policies. */
export const scheduleOperations = (tag: OperationTag, schedules: LifecyclePolicySchedules) => {
  const operation = operationsOf(tag, { schedule_id: IdOf('the schedule') });
  return [
    operation('GET', path, {
      id: 'getLifecyclePolicySchedule',
      summary: 'Get a schedule of a lifecycle policy',
      access: projectReader,
      response: Schedule,
      handle: ({ scope, params }) => schedules.get(scope, params.schedule_id),
    }),
    operation('PATCH', path, {
      id: 'updateLifecyclePolicySchedule',
      summary: 'Update a schedule of a lifecycle policy',
      description: 'No run starts because of a change: the next one is the first instant of the new schedule after it.',
      access: projectMember,
      body: UpdateSchedule,
      bodyErrors: schedules.bodyErrors,
      response: Schedule,
      handle: ({ by, scope, params, body }) => schedules.update(by, scope, params.schedule_id, body),
    }),
  ];
};
