import schema from 'schema:SubscribeToUserActions';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { keepSearch } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { KIND, USER_ACTIONS } from './data.ts';

const PATH = `${USER_ACTIONS}/subscribe` as const;

export function Subscribe() {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'subscribeToUserActions', method: 'POST', path: PATH, params: {} },
    schema,
    initial: { url: '', auth_header_name: 'Authorization', auth_header_value: '' },
    queryKind: KIND,
    sent: () => ({
      done: 'Subscribed to user actions',
      to: scope.path('user-actions'),
      search: keepSearch,
    }),
  });
  return (
    <FormDialog
      title="Subscribe to user actions"
      form={form}
      submitLabel="Subscribe"
      disabledReason={useNotClientAdminReason()}
    >
      <Field form={form} path="url" label="URL" placeholder="https://siem.example.com/cloudyard" />
      <Field form={form} path="auth_header_name" label="Header" />
      <Field form={form} path="auth_header_value" label="Value of the header" type="password" />
    </FormDialog>
  );
}
