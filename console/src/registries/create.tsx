import schema from 'schema:CreateRegistry';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { KIND, REGISTRIES, type Registry } from './data.ts';

export function CreateRegistry() {
  const scope = useScope();
  const form = useRequestForm<Registry>({
    call: { operationId: 'createRegistry', method: 'POST', path: REGISTRIES, params: scopeParams(scope) },
    schema,
    initial: { name: '', storage_limit: 5 },
    queryKind: KIND,
    sent: (_body, registry) => ({
      done: `Created registry ${registry.name}`,
      to: scope.path('registries', registry.id),
    }),
  });
  return (
    <FormDialog title="Create registry" form={form} submitLabel="Create registry">
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
