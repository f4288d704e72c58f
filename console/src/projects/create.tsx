import schema from 'schema:CreateProject';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { HOME, useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND } from './data.ts';

const PATH = '/cloud/v1/projects';

export function CreateProject() {
  const scope = useScope();
  const leave = useLeave();
  const reason = useNotClientAdminReason();
  const form = useForm({
    schema,
    initial: { name: '', description: '' },
    send: async (body) => {
      const { id, name } = await unwrap(api.POST(PATH, { body: body as never }));
      const link = { to: `/p/${id}/r/${scope.region}/${HOME}`, text: 'Open' };
      showToast({ tone: 'ok', text: `Created project ${name}`, link });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('projects') });
    },
  });
  return (
    <FormDialog
      title="Create project"
      form={form}
      submitLabel="Create project"
      disabledReason={reason}
      call={{ operationId: 'createProject', method: 'POST', path: PATH, params: {} }}
    >
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="description" label="Description" type="textarea" />
    </FormDialog>
  );
}
