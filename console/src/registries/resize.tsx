import schema from 'schema:ResizeRegistry';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { formatBytes, formatGib } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CurrentRegistry, KIND, REGISTRY, type Registry, registryParams } from './data.ts';

const PATH = `${REGISTRY}/resize` as const;

export function ResizeRegistry() {
  return <CurrentRegistry>{(registry) => <ResizeDialog registry={registry} />}</CurrentRegistry>;
}

function ResizeDialog({ registry }: { registry: Registry }) {
  const scope = useScope();
  const leave = useLeave();
  const params = registryParams(scope, registry.id);
  const form = useForm({
    schema,
    isEdit: true,
    initial: { storage_limit: registry.storage_limit },
    send: async (body) => {
      await unwrap(api.PATCH(PATH, { params: { path: params }, body: body as never }));
      const limit = formatGib(Number(body['storage_limit']));
      showToast({ tone: 'ok', text: `Changed the storage limit of ${registry.name} to ${limit}` });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('registries', registry.id) });
    },
  });
  return (
    <FormDialog
      title={`Resize ${registry.name}`}
      form={form}
      submitLabel="Resize"
      call={{ operationId: 'resizeRegistry', method: 'PATCH', path: PATH, params }}
    >
      <Field
        form={form}
        path="storage_limit"
        label="Storage limit (GiB)"
        help={`The images use ${formatBytes(registry.storage_used)} now. A limit below that deletes nothing; it only rejects pushes.`}
      />
    </FormDialog>
  );
}
