import schema from 'schema:AddLifecyclePolicySchedules';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import type { Values } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, POLICY, type Policy, policyParams } from './data.ts';
import { Foresight } from './foresight.tsx';
import { ScheduleFields } from './schedule-fields.tsx';
import { nightly, scheduleForEdit, toScheduleInput } from './schedule-input.ts';

export function AddSchedule() {
  return <CurrentPolicy>{(policy) => <AddDialog policy={policy} />}</CurrentPolicy>;
}

function AddDialog({ policy }: { policy: Policy }) {
  const scope = useScope();
  const params = policyParams(scope, policy.id);
  const path = `${POLICY}/add_schedules`;
  const form = useRequestForm({
    call: { operationId: 'addLifecyclePolicySchedules', method: 'POST', path, params },
    schema,
    initial: { schedules: [nightly] },
    toBody: (values) => ({ schedules: (values['schedules'] as Values[]).map(toScheduleInput) }),
    queryKind: KIND,
    sent: () => ({ done: `Added a schedule to ${policy.name}`, to: scope.path('lifecycle-policies', policy.id) }),
  });
  const existing = policy.schedules.map((schedule) => toScheduleInput(scheduleForEdit(schedule)));
  return (
    <FormDialog title={`Add a schedule to ${policy.name}`} form={form} submitLabel="Add schedule">
      <ScheduleFields form={form} prefix="schedules.0." title="Schedule" />
      <Foresight
        schedules={[...existing, toScheduleInput((form.get('schedules') as Values[])[0]!)]}
        volumeIds={(policy.volumes ?? []).map((volume) => volume.volume_id)}
      />
    </FormDialog>
  );
}
