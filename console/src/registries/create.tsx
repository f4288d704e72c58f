import schema from 'schema:CreateRegistry';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND, REGISTRIES } from './data.ts';

export function CreateRegistry() {
  const scope = useScope();
  const leave = useLeave();
  const params = scopeParams(scope);
  const form = useForm({
    schema,
    initial: { name: '', storage_limit: 5 },
    send: async (body) => {
      const registry = await unwrap(api.POST(REGISTRIES, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: `Created registry ${registry.name}` });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('registries', registry.id) });
    },
  });
  return (
    <FormDialog
      title="Create registry"
      form={form}
      submitLabel="Create registry"
      call={{ operationId: 'createRegistry', method: 'POST', path: REGISTRIES, params }}
    >
      <Field form={form} path="name" label="Name" />
      <Field
        form={form}
        path="storage_limit"
        label="Storage limit (GiB)"
        help="Pushes beyond the limit are rejected. It can be changed later."
      />
    </FormDialog>
  );
}
