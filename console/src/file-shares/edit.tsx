import schema from 'schema:UpdateFileShare';
import { changesOf, editedNameAndTags, tagsForEdit } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentShare, type FileShare, KIND, shareParams } from './data.ts';

const PATH = '/cloud/v3/file_shares/{project_id}/{region_id}/{file_share_id}';

export function EditFileShare() {
  return <CurrentShare>{(share) => <EditDialog share={share} />}</CurrentShare>;
}

function EditDialog({ share: current }: { share: FileShare }) {
  const share = useInitial(current);
  const scope = useScope();
  const settings = { share_settings: { root_squash: share.share_settings.root_squash ?? false } };
  const form = useRequestForm({
    call: { operationId: 'updateFileShare', method: 'PATCH', path: PATH, params: shareParams(scope, share.id) },
    schema,
    isEdit: true,
    initial: { name: share.name, ...settings, tags: tagsForEdit(share.tags) },
    toBody: ({ share_settings, ...values }) => ({
      ...editedNameAndTags(share, values),
      ...changesOf(settings, { share_settings }),
    }),
    queryKind: KIND,
    sent: () => ({
      busy: `Updating file share ${share.name}`,
      done: `Updated file share ${share.name}`,
      link: { to: scope.path('file-shares', share.id), text: 'Open' },
      to: scope.path('file-shares', share.id),
    }),
  });
  return (
    <FormDialog title={`Edit ${share.name}`} form={form} submitLabel="Save">
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
