import schema from 'schema:CreateClient';
import { useNotOperatorReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { type Client, KIND } from './data.ts';

const PATH = '/cloudyard/v1/clients';

export function CreateClient() {
  const scope = useScope();
  const form = useRequestForm<Client>({
    call: { operationId: 'createClient', method: 'POST', path: PATH, params: {} },
    schema,
    initial: { name: '' },
    queryKind: KIND,
    sent: (_body, { id, name }) => {
      const link = { to: scope.path('tokens', 'new'), search: { client: String(id) }, text: 'Create its token' };
      return { done: `Created client ${name}`, link, to: scope.path('clients') };
    },
  });
  return (
    <FormDialog title="Create client" form={form} submitLabel="Create client" disabledReason={useNotOperatorReason()}>
      <Field form={form} path="name" label="Name" />
      <p className="muted">The client gets a default project, and a network in each region.</p>
    </FormDialog>
  );
}
