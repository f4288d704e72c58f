import schema from 'schema:CreateFileShareAccessRule';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentShare, type FileShare, KIND, SHARE, shareParams } from './data.ts';

const PATH = `${SHARE}/access_rule`;
const MODES = [
  { value: 'rw', label: 'read and write' },
  { value: 'ro', label: 'read only' },
];

export function CreateAccessRule() {
  return <CurrentShare>{(share) => <CreateDialog share={share} />}</CurrentShare>;
}

function CreateDialog({ share }: { share: FileShare }) {
  const scope = useScope();
  const params = shareParams(scope, share.id);
  const form = useRequestForm({
    call: { operationId: 'createFileShareAccessRule', method: 'POST', path: PATH, params },
    schema,
    initial: { ip_address: '', access_mode: 'rw' },
    queryKind: KIND,
    sent: ({ ip_address }) => ({
      done: `${String(ip_address)} may mount ${share.name}`,
      to: scope.path('file-shares', share.id),
      search: { tab: 'access' },
    }),
  });
  return (
    <FormDialog title={`Add an access rule to ${share.name}`} form={form} submitLabel="Add access rule">
      <Field form={form} path="ip_address" label="Address or network" placeholder="10.0.0.0/24" />
      <Field form={form} path="access_mode" label="Access" help="" choices={MODES} />
    </FormDialog>
  );
}
