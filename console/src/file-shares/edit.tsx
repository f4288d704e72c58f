import schema from 'schema:UpdateFileShare';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { editedTags, tagsForEdit } from '../ui/form/tags.ts';
import { useForm, useInitial } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { CurrentShare, type FileShare, KIND } from './data.ts';

const PATH = '/cloud/v3/file_shares/{project_id}/{region_id}/{file_share_id}';

export function EditFileShare() {
  return <CurrentShare>{(share) => <EditDialog share={share} />}</CurrentShare>;
}

function EditDialog({ share: current }: { share: FileShare }) {
  const share = useInitial(current);
  const scope = useScope();
  const leave = useLeave();
  const params = { ...scopeParams(scope), file_share_id: share.id };
  const squash = share.share_settings.root_squash ?? false;
  const form = useForm({
    schema,
    isEdit: true,
    initial: { name: share.name, share_settings: { root_squash: squash }, tags: tagsForEdit(share.tags) },
    // Only what changed is sent, so that a change by another client in the meantime is not undone.
    toBody: (values) => {
      const { root_squash } = values['share_settings'] as { root_squash: boolean };
      const tags = editedTags(share.tags, values['tags']);
      return {
        ...(values['name'] === share.name ? {} : { name: values['name'] }),
        ...(root_squash === squash ? {} : { share_settings: { root_squash } }),
        ...(tags === undefined ? {} : { tags }),
      };
    },
    send: async (body) => {
      const { tasks } = await unwrap(api.PATCH(PATH, { params: { path: params }, body: body as never }));
      trackTasks(tasks, scope, {
        busy: `Updating file share ${share.name}`,
        done: `Updated file share ${share.name}`,
        link: { to: scope.path('file-shares', share.id), text: 'Open' },
      });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('file-shares', share.id) });
    },
  });
  return (
    <FormDialog
      title={`Edit ${share.name}`}
      form={form}
      submitLabel="Save"
      call={{ operationId: 'updateFileShare', method: 'PATCH', path: PATH, params }}
    >
      <Field form={form} path="name" label="Name" />
      <Field
        form={form}
        path="share_settings.root_squash"
        label="Map root of clients to an unprivileged user"
        help=""
      />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
