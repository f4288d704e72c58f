import schema from 'schema:LifecyclePolicyVolumeIds';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, POLICY, type Policy, policyParams } from './data.ts';
import { Foresight } from './foresight.tsx';
import { usePolicyForm } from './policy-form.ts';
import { scheduleForEdit, toScheduleInput } from './schedule-input.ts';
import { VolumeChoice } from './volume-choice.tsx';

export function AddVolumes() {
  return <CurrentPolicy>{(policy) => <AddDialog policy={policy} />}</CurrentPolicy>;
}

function AddDialog({ policy }: { policy: Policy }) {
  const params = policyParams(useScope(), policy.id);
  const path = `${POLICY}/add_volumes_to_policy`;
  const call = { operationId: 'addLifecyclePolicyVolumes', method: 'PUT', path, params };
  const present = (policy.volumes ?? []).map((volume) => volume.volume_id);
  const form = usePolicyForm({
    policy,
    schema,
    call,
    initial: { volume_ids: [] },
    done: (body) => `Added ${countText((body['volume_ids'] as string[]).length)} to ${policy.name}`,
    tab: 'volumes',
  });
  const chosen = form.get('volume_ids') as string[];
  return (
    <FormDialog
      title={`Add volumes to ${policy.name}`}
      form={form}
      submitLabel="Add volumes"
      segments={2}
      disabledReason={chosen.length > 0 || form.isSubmitting ? null : 'Choose volumes first'}
      call={call}
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
