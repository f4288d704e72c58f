import { useParams } from '@tanstack/react-router';
import schema from 'schema:UpdateLifecyclePolicySchedule';
import { PartDialog } from '../ui/deleted-elsewhere.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { type Form, useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, type Policy, type Schedule } from './data.ts';
import { Foresight } from './foresight.tsx';
import { ScheduleFields } from './schedule-fields.tsx';
import { scheduleChanges, scheduleForEdit, toScheduleInput } from './schedule-input.ts';

const PATH = '/cloud/v1/schedule/{project_id}/{region_id}/{schedule_id}';
const FIELDS = Object.keys(schema.properties ?? {});

export function EditSchedule() {
  const { schedule: id } = useParams({ strict: false }) as { schedule: string };
  return (
    <CurrentPolicy>
      {(policy) => (
        <PartDialog part={policy.schedules.find((each) => each.id === id)} what="schedule">
          {(schedule) => <EditDialog policy={policy} schedule={schedule} />}
        </PartDialog>
      )}
    </CurrentPolicy>
  );
}

function EditDialog({ policy, schedule: current }: { policy: Policy; schedule: Schedule }) {
  const schedule = useInitial(current);
  const scope = useScope();
  const params = { ...scopeParams(scope), schedule_id: schedule.id };
  const form = useRequestForm({
    call: { operationId: 'updateLifecyclePolicySchedule', method: 'PATCH', path: PATH, params },
    schema,
    initial: scheduleForEdit(schedule),
    isEdit: true,
    // Only what changed is sent: an interval that is sent starts again.
    toBody: (values) => scheduleChanges(schedule, values),
    queryKind: KIND,
    sent: () => ({ done: `Changed a schedule of ${policy.name}`, to: scope.path('lifecycle-policies', policy.id) }),
  });
  const edited = toScheduleInput(valuesOf(form));
  return (
    <FormDialog title={`Edit a schedule of ${policy.name}`} form={form} submitLabel="Save">
      <ScheduleFields form={{ ...form, body: valuesOf(form) }} prefix="" title="Schedule" />
      <Foresight
        schedules={policy.schedules.map((each) =>
          each.id === schedule.id ? edited : toScheduleInput(scheduleForEdit(each)),
        )}
        volumeIds={(policy.volumes ?? []).map((volume) => volume.volume_id)}
      />
    </FormDialog>
  );
}

/** Everything that the form shows, changed or not. */
function valuesOf(form: Form) {
  return Object.fromEntries(FIELDS.map((name) => [name, form.get(name)]));
}
