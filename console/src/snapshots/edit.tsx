import schema from 'schema:UpdateSnapshot';
import { editedNameAndTags, tagsForEdit } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentSnapshot, KIND, SNAPSHOT, type Snapshot, snapshotParams } from './data.ts';

export function EditSnapshot() {
  return <CurrentSnapshot>{(snapshot) => <EditDialog snapshot={snapshot} />}</CurrentSnapshot>;
}

function EditDialog({ snapshot: current }: { snapshot: Snapshot }) {
  const snapshot = useInitial(current);
  const scope = useScope();
  const params = snapshotParams(scope, snapshot.id);
  const form = useRequestForm<Snapshot>({
    call: { operationId: 'updateSnapshot', method: 'PATCH', path: SNAPSHOT, params },
    schema,
    isEdit: true,
    initial: { name: snapshot.name, tags: tagsForEdit(snapshot.tags) },
    toBody: (values) => editedNameAndTags(snapshot, values),
    queryKind: KIND,
    sent: (_body, { name }) => ({ done: `Updated snapshot ${name}`, to: scope.path('snapshots', snapshot.id) }),
  });
  return (
    <FormDialog title={`Edit ${snapshot.name}`} form={form} submitLabel="Save">
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
