import schema from 'schema:UpdateVolume';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { editedNameAndTags, tagsForEdit } from '../ui/form/tags.ts';
import { useForm, useInitial } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CurrentVolume, KIND, VOLUME, type Volume, volumeParams } from './data.ts';

export function EditVolume() {
  return <CurrentVolume>{(volume) => <EditDialog volume={volume} />}</CurrentVolume>;
}

function EditDialog({ volume: current }: { volume: Volume }) {
  const volume = useInitial(current);
  const scope = useScope();
  const leave = useLeave();
  const params = volumeParams(scope, volume.id);
  const form = useForm({
    schema,
    isEdit: true,
    initial: { name: volume.name, tags: tagsForEdit(volume.tags) },
    toBody: (values) => editedNameAndTags(volume, values),
    send: async (body) => {
      const { name } = await unwrap(api.PATCH(VOLUME, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: `Updated volume ${name}` });
      await queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('volumes', volume.id) });
    },
  });
  return (
    <FormDialog
      title={`Edit ${volume.name}`}
      form={form}
      submitLabel="Save"
      call={{ operationId: 'updateVolume', method: 'PATCH', path: VOLUME, params }}
    >
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
