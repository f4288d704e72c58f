import schema from 'schema:CreateClient';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotOperatorReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND } from './data.ts';

const PATH = '/cloudyard/v1/clients';

export function CreateClient() {
  const scope = useScope();
  const leave = useLeave();
  const form = useForm({
    schema,
    initial: { name: '' },
    send: async (body) => {
      const { id, name } = await unwrap(api.POST(PATH, { body: body as never }));
      const link = { to: scope.path('tokens', 'new'), search: { client: String(id) }, text: 'Create its token' };
      showToast({ tone: 'ok', text: `Created client ${name}`, link });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('clients') });
    },
  });
  return (
    <FormDialog
      title="Create client"
      form={form}
      submitLabel="Create client"
      disabledReason={useNotOperatorReason()}
      call={{ operationId: 'createClient', method: 'POST', path: PATH, params: {} }}
    >
      <Field form={form} path="name" label="Name" />
      <p className="muted">The client gets a default project, and a network in each region.</p>
    </FormDialog>
  );
}
