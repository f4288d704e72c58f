import schema from 'schema:ExtendVolume';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { formatGib } from '../ui/numbers.ts';
import { PricePreview } from '../ui/price.tsx';
import { useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { CurrentVolume, KIND, newVolumePrice, VOLUME, type Volume, volumeParams, volumePricePath } from './data.ts';

const PATH = `${VOLUME}/extend` as const;

export function ExtendVolume() {
  return <CurrentVolume>{(volume) => <ExtendDialog volume={volume} />}</CurrentVolume>;
}

function ExtendDialog({ volume }: { volume: Volume }) {
  const scope = useScope();
  const leave = useLeave();
  const params = volumeParams(scope, volume.id);
  const form = useForm({
    // The operation requires more than the current size.
    schema: { ...schema, properties: { size: { ...schema.properties?.['size'], minimum: volume.size + 1 } } },
    initial: { size: volume.size + 1 },
    send: async (body) => {
      const { tasks } = await unwrap(api.POST(PATH, { params: { path: params }, body: body as never }));
      trackTasks(tasks, scope, {
        busy: `Extending volume ${volume.name}`,
        done: `Extended volume ${volume.name} to ${formatGib(Number(body['size']))}`,
        link: { to: scope.path('volumes', volume.id), text: 'Open' },
      });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('volumes', volume.id) });
    },
  });
  return (
    <FormDialog
      title={`Extend ${volume.name}`}
      form={form}
      submitLabel="Extend"
      call={{ operationId: 'extendVolume', method: 'POST', path: PATH, params }}
    >
      <Field
        form={form}
        path="size"
        label="New size (GiB)"
        help={`The volume has ${formatGib(volume.size)} now. It cannot shrink again.`}
      />
      <PricePreview path={volumePricePath(scope)} body={newVolumePrice(form.get('size'), volume.volume_type)} />
    </FormDialog>
  );
}
