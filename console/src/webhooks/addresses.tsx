import { useQuery } from '@tanstack/react-query';
import schema from 'schema:UpdateClient';
import { useNotClientAdminReason } from '../api/session.ts';
import { CLIENT, type Client, clientQuery, KIND } from '../clients/data.ts';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { RowsField } from '../ui/form/rows-field.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useClientId, useScope } from '../ui/scope.tsx';

export function EditAddresses() {
  const { data } = useQuery(clientQuery(useClientId()));
  return data ? <EditDialog client={data} /> : null;
}

function EditDialog({ client }: { client: Client }) {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'updateClient', method: 'PATCH', path: CLIENT, params: { client_id: client.id } },
    schema,
    isEdit: true,
    initial: { emails: client.emails },
    queryKind: KIND,
    sent: () => ({ done: 'Updated the e-mail addresses', to: scope.path('webhooks') }),
  });
  return (
    <FormDialog title="Edit e-mail addresses" form={form} submitLabel="Save" disabledReason={useNotClientAdminReason()}>
      <RowsField
        form={form}
        path="emails"
        label="Addresses"
        help="At most 20 addresses that get every notification."
        columns={[{ label: 'Address', placeholder: 'alerts@example.com' }]}
      />
    </FormDialog>
  );
}
