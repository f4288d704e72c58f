import schema from 'schema:ResizeRegistry';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { formatBytes, formatGib } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentRegistry, KIND, REGISTRY, type Registry, registryParams } from './data.ts';

const PATH = `${REGISTRY}/resize` as const;

export function ResizeRegistry() {
  return <CurrentRegistry>{(registry) => <ResizeDialog registry={registry} />}</CurrentRegistry>;
}

function ResizeDialog({ registry }: { registry: Registry }) {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'resizeRegistry', method: 'PATCH', path: PATH, params: registryParams(scope, registry.id) },
    schema,
    isEdit: true,
    initial: { storage_limit: registry.storage_limit },
    queryKind: KIND,
    sent: ({ storage_limit }) => {
      const limit = formatGib(Number(storage_limit));
      return {
        done: `Changed the storage limit of ${registry.name} to ${limit}`,
        to: scope.path('registries', registry.id),
      };
    },
  });
  return (
    <FormDialog title={`Resize ${registry.name}`} form={form} submitLabel="Resize">
      <Field
        form={form}
        path="storage_limit"
        label="Storage limit (GiB)"
        help={`The images use ${formatBytes(registry.storage_used)} now. A limit below that deletes nothing; it only rejects pushes.`}
      />
    </FormDialog>
  );
}
