import schema from 'schema:LifecyclePolicyVolumeIds';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, POLICY, type Policy, policyParams } from './data.ts';
import { Foresight } from './foresight.tsx';
import { scheduleForEdit, toScheduleInput } from './schedule-input.ts';
import { VolumeChoice } from './volume-choice.tsx';

export function AddVolumes() {
  return <CurrentPolicy>{(policy) => <AddDialog policy={policy} />}</CurrentPolicy>;
}

function AddDialog({ policy }: { policy: Policy }) {
  const scope = useScope();
  const params = policyParams(scope, policy.id);
  const path = `${POLICY}/add_volumes_to_policy`;
  const present = (policy.volumes ?? []).map((volume) => volume.volume_id);
  const form = useRequestForm({
    call: { operationId: 'addLifecyclePolicyVolumes', method: 'PUT', path, params },
    schema,
    initial: { volume_ids: [] },
    queryKind: KIND,
    sent: ({ volume_ids }) => ({
      done: `Added ${countText((volume_ids as string[]).length)} to ${policy.name}`,
      to: scope.path('lifecycle-policies', policy.id),
      search: { tab: 'volumes' },
    }),
  });
  const chosen = form.get('volume_ids') as string[];
  return (
    <FormDialog
      title={`Add volumes to ${policy.name}`}
      form={form}
      submitLabel="Add volumes"
      disabledReason={chosen.length > 0 || form.isSubmitting ? null : 'Choose volumes first'}
    >
      <VolumeChoice form={form} excluded={present} />
      <Foresight
        schedules={policy.schedules.map((schedule) => toScheduleInput(scheduleForEdit(schedule)))}
        volumeIds={[...present, ...chosen]}
      />
    </FormDialog>
  );
}

const countText = (count: number) => (count === 1 ? '1 volume' : `${count} volumes`);
