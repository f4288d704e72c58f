import schema from 'schema:UpdateSnapshot';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { editedNameAndTags, tagsForEdit } from '../ui/form/tags.ts';
import { useForm, useInitial } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CurrentSnapshot, KIND, SNAPSHOT, type Snapshot, snapshotParams } from './data.ts';

export function EditSnapshot() {
  return <CurrentSnapshot>{(snapshot) => <EditDialog snapshot={snapshot} />}</CurrentSnapshot>;
}

function EditDialog({ snapshot: current }: { snapshot: Snapshot }) {
  const snapshot = useInitial(current);
  const scope = useScope();
  const leave = useLeave();
  const params = snapshotParams(scope, snapshot.id);
  const form = useForm({
    schema,
    isEdit: true,
    initial: { name: snapshot.name, tags: tagsForEdit(snapshot.tags) },
    toBody: (values) => editedNameAndTags(snapshot, values),
    send: async (body) => {
      const { name } = await unwrap(api.PATCH(SNAPSHOT, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: `Updated snapshot ${name}` });
      await queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('snapshots', snapshot.id) });
    },
  });
  return (
    <FormDialog
      title={`Edit ${snapshot.name}`}
      form={form}
      submitLabel="Save"
      call={{ operationId: 'updateSnapshot', method: 'PATCH', path: SNAPSHOT, params }}
    >
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
