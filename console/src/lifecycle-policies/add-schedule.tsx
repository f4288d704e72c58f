import schema from 'schema:AddLifecyclePolicySchedules';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import type { Values } from '../ui/form/use-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, POLICY, type Policy, policyParams } from './data.ts';
import { Foresight } from './foresight.tsx';
import { usePolicyForm } from './policy-form.ts';
import { ScheduleFields } from './schedule-fields.tsx';
import { nightly, scheduleForEdit, toScheduleInput } from './schedule-input.ts';

export function AddSchedule() {
  return <CurrentPolicy>{(policy) => <AddDialog policy={policy} />}</CurrentPolicy>;
}

function AddDialog({ policy }: { policy: Policy }) {
  const params = policyParams(useScope(), policy.id);
  const path = `${POLICY}/add_schedules`;
  const call = { operationId: 'addLifecyclePolicySchedules', method: 'POST', path, params };
  const form = usePolicyForm({
    policy,
    schema,
    call,
    initial: { schedules: [nightly] },
    toBody: (values) => ({ schedules: (values['schedules'] as Values[]).map(toScheduleInput) }),
    done: () => `Added a schedule to ${policy.name}`,
  });
  const existing = policy.schedules.map((schedule) => toScheduleInput(scheduleForEdit(schedule)));
  return (
    <FormDialog
      title={`Add a schedule to ${policy.name}`}
      form={form}
      submitLabel="Add schedule"
      segments={2}
      call={call}
    >
      <ScheduleFields form={form} prefix="schedules.0." title="Schedule" />
      <Foresight
        schedules={[...existing, toScheduleInput((form.get('schedules') as Values[])[0]!)]}
        volumeIds={(policy.volumes ?? []).map((volume) => volume.volume_id)}
      />
    </FormDialog>
  );
}
