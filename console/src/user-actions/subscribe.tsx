import schema from 'schema:SubscribeToUserActions';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND, USER_ACTIONS } from './data.ts';

const PATH = `${USER_ACTIONS}/subscribe` as const;

export function Subscribe() {
  const scope = useScope();
  const leave = useLeave();
  const form = useForm({
    schema,
    initial: { url: '', auth_header_name: 'Authorization', auth_header_value: '' },
    send: async (body) => {
      await unwrap(api.POST(PATH, { body: body as never }));
      showToast({ tone: 'ok', text: 'Subscribed to user actions' });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('user-actions'), search: ((search: object) => search) as never });
    },
  });
  return (
    <FormDialog
      title="Subscribe to user actions"
      form={form}
      submitLabel="Subscribe"
      disabledReason={useNotClientAdminReason()}
      call={{ operationId: 'subscribeToUserActions', method: 'POST', path: PATH, params: {} }}
    >
      <Field form={form} path="url" label="URL" placeholder="https://siem.example.com/cloudyard" />
      <Field form={form} path="auth_header_name" label="Header" />
      <Field form={form} path="auth_header_value" label="Value of the header" type="password" />
    </FormDialog>
  );
}
