import schema from 'schema:CreateFileShareAccessRule';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CurrentShare, type FileShare, KIND } from './data.ts';

const PATH = '/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/access_rule';
const MODES = [
  { value: 'rw', label: 'read and write' },
  { value: 'ro', label: 'read only' },
];

export function CreateAccessRule() {
  return <CurrentShare>{(share) => <CreateDialog share={share} />}</CurrentShare>;
}

function CreateDialog({ share }: { share: FileShare }) {
  const scope = useScope();
  const leave = useLeave();
  const params = { ...scopeParams(scope), file_share_id: share.id };
  const form = useForm({
    schema,
    initial: { ip_address: '', access_mode: 'rw' },
    send: async (body) => {
      await unwrap(api.POST(PATH, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: `${String(body['ip_address'])} may mount ${share.name}` });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('file-shares', share.id), search: { tab: 'access' } as never });
    },
  });
  return (
    <FormDialog
      title={`Add an access rule to ${share.name}`}
      form={form}
      submitLabel="Add access rule"
      segments={2}
      call={{ operationId: 'createFileShareAccessRule', method: 'POST', path: PATH, params }}
    >
      <Field form={form} path="ip_address" label="Address or network" placeholder="10.0.0.0/24" />
      <Field form={form} path="access_mode" label="Access" help="" choices={MODES} />
    </FormDialog>
  );
}
