import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import schema from 'schema:UpdateClient';
import { useNotClientAdminReason } from '../api/session.ts';
import { DialogRoute } from '../ui/dialog.tsx';
import { changesOf } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { RowsField } from '../ui/form/rows-field.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { CLIENT, type Client, clientQuery, KIND } from './data.ts';

export function EditClient() {
  const { id } = useParams({ strict: false }) as { id: string };
  const query = useQuery(clientQuery(Number(id)));
  if (query.data) return <EditDialog client={query.data} />;
  return (
    <DialogRoute title="Edit client">
      <NotLoaded query={query} />
    </DialogRoute>
  );
}

function EditDialog({ client: current }: { client: Client }) {
  const client = useInitial(current);
  const scope = useScope();
  const form = useRequestForm<Client>({
    call: { operationId: 'updateClient', method: 'PATCH', path: CLIENT, params: { client_id: client.id } },
    schema,
    isEdit: true,
    initial: { name: client.name, emails: client.emails },
    toBody: (values) => changesOf(client, values),
    queryKind: KIND,
    sent: (_body, { name }) => ({ done: `Updated client ${name}`, to: scope.path('clients', client.id) }),
  });
  return (
    <FormDialog title={`Edit ${client.name}`} form={form} submitLabel="Save" disabledReason={useNotClientAdminReason()}>
      <Field form={form} path="name" label="Name" help="" />
      <RowsField
        form={form}
        path="emails"
        label="E-mail addresses"
        help="They receive the notifications of the client."
        columns={[{ label: 'Address', placeholder: 'alerts@example.com' }]}
      />
    </FormDialog>
  );
}
