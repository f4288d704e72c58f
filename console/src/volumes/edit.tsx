import schema from 'schema:UpdateVolume';
import { editedNameAndTags, tagsForEdit } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentVolume, KIND, VOLUME, type Volume, volumeParams } from './data.ts';

export function EditVolume() {
  return <CurrentVolume>{(volume) => <EditDialog volume={volume} />}</CurrentVolume>;
}

function EditDialog({ volume: current }: { volume: Volume }) {
  const volume = useInitial(current);
  const scope = useScope();
  const form = useRequestForm<Volume>({
    call: { operationId: 'updateVolume', method: 'PATCH', path: VOLUME, params: volumeParams(scope, volume.id) },
    schema,
    isEdit: true,
    initial: { name: volume.name, tags: tagsForEdit(volume.tags) },
    toBody: (values) => editedNameAndTags(volume, values),
    queryKind: KIND,
    sent: (_body, { name }) => ({ done: `Updated volume ${name}`, to: scope.path('volumes', volume.id) }),
  });
  return (
    <FormDialog title={`Edit ${volume.name}`} form={form} submitLabel="Save">
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
