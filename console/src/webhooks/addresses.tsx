import { useQuery } from '@tanstack/react-query';
import schema from 'schema:UpdateClient';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { RowsField } from '../ui/form/rows-field.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useClientId, useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CLIENT, clientQuery } from './data.ts';
import type { Client } from './data.ts';

export function EditAddresses() {
  const { data } = useQuery(clientQuery(useClientId()));
  return data ? <EditDialog client={data} /> : null;
}

function EditDialog({ client }: { client: Client }) {
  const scope = useScope();
  const leave = useLeave();
  const params = { client_id: client.id };
  const form = useForm({
    schema,
    isEdit: true,
    initial: { emails: client.emails },
    send: async (body) => {
      await unwrap(api.PATCH(CLIENT, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: 'Updated the e-mail addresses' });
      await queryClient.invalidateQueries({ queryKey: ['clients'] });
      await leave({ to: scope.path('webhooks') });
    },
  });
  return (
    <FormDialog
      title="Edit e-mail addresses"
      form={form}
      submitLabel="Save"
      disabledReason={useNotClientAdminReason()}
      call={{ operationId: 'updateClient', method: 'PATCH', path: CLIENT, params }}
    >
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
