import schema from 'schema:CreateNetwork';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';

const PATH = '/cloud/v1/networks/{project_id}/{region_id}';

export function CreateNetwork() {
  const scope = useScope();
  const leave = useLeave();
  const params = scopeParams(scope);
  const form = useForm({
    schema,
    initial: { name: '' },
    send: async (body) => {
      const { tasks } = await unwrap(api.POST(PATH, { params: { path: params }, body: body as never }));
      trackTasks(tasks, scope, {
        busy: `Creating network ${String(body['name'])}`,
        done: `Created network ${String(body['name'])}`,
        link: { to: scope.path('networks'), text: 'Networks' },
      });
      void queryClient.invalidateQueries({ queryKey: ['networks'] });
      await leave({ to: scope.path('networks') });
    },
  });
  return (
    <FormDialog
      title="Create network"
      form={form}
      submitLabel="Create network"
      call={{ operationId: 'createNetwork', method: 'POST', path: PATH, params }}
    >
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="type" label="Type" help="By default vxlan." />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
