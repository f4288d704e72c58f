import { useQuery } from '@tanstack/react-query';
import schema from 'schema:RetypeVolume';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { PricePreview } from '../ui/price.tsx';
import { useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { showToast } from '../ui/toasts.tsx';
import { CurrentVolume, KIND, newVolumePrice, VOLUME, type Volume, volumeParams, volumeTypesQuery } from './data.ts';

const PATH = `${VOLUME}/retype` as const;

export function RetypeVolume() {
  return <CurrentVolume>{(volume) => <RetypeDialog volume={volume} />}</CurrentVolume>;
}

function RetypeDialog({ volume }: { volume: Volume }) {
  const scope = useScope();
  const leave = useLeave();
  const offered = useQuery(volumeTypesQuery(scope)).data ?? [];
  const allowed = schema.properties?.['volume_type']?.enum ?? [];
  const types = offered.filter((type) => type !== volume.volume_type && allowed.includes(type));
  const params = volumeParams(scope, volume.id);
  const form = useForm({
    call: { operationId: 'retypeVolume', method: 'POST', path: PATH, params },
    schema,
    initial: {},
    send: async (body) => {
      const { task_id } = await unwrap(api.POST(PATH, { params: { path: params }, body: body as never }));
      const done = `Changed the type of volume ${volume.name} to ${String(body['volume_type'])}`;
      if (task_id) trackTasks([task_id], scope, { busy: `Changing the type of volume ${volume.name}`, done });
      else showToast({ tone: 'ok', text: done });
      await queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('volumes', volume.id) });
    },
  });
  return (
    <FormDialog
      title={`Change the type of ${volume.name}`}
      form={form}
      submitLabel="Change type"
      disabledReason={types.length === 0 ? 'The region offers no other type' : null}
    >
      <Field
        form={form}
        path="volume_type"
        label="New type"
        help={`The type is ${volume.volume_type} now.`}
        choices={types.map((type) => ({ value: type, label: type }))}
      />
      <PricePreview
        kind="volumes"
        body={form.get('volume_type') ? newVolumePrice(volume.size, String(form.get('volume_type'))) : null}
      />
    </FormDialog>
  );
}
