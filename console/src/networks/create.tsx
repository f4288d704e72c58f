import schema from 'schema:CreateNetwork';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';

const PATH = '/cloud/v1/networks/{project_id}/{region_id}';

export function CreateNetwork() {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'createNetwork', method: 'POST', path: PATH, params: scopeParams(scope) },
    schema,
    initial: { name: '' },
    queryKind: 'networks',
    sent: ({ name }) => ({
      busy: `Creating network ${String(name)}`,
      done: `Created network ${String(name)}`,
      link: { to: scope.path('networks'), text: 'Networks' },
      to: scope.path('networks'),
    }),
  });
  return (
    <FormDialog title="Create network" form={form} submitLabel="Create network">
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="type" label="Type" help="By default vxlan." />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
