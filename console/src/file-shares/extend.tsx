import schema from 'schema:ExtendFileShare';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { formatGib } from '../ui/numbers.ts';
import { PricePreview } from '../ui/price.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { CurrentShare, type FileShare, KIND } from './data.ts';

const PATH = '/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/extend';

export function ExtendFileShare() {
  return <CurrentShare>{(share) => <ExtendDialog share={share} />}</CurrentShare>;
}

function ExtendDialog({ share }: { share: FileShare }) {
  const scope = useScope();
  const leave = useLeave();
  const params = { ...scopeParams(scope), file_share_id: share.id };
  const form = useForm({
    // The operation requires more than the current size.
    schema: { ...schema, properties: { size: { ...schema.properties?.['size'], minimum: share.size + 1 } } },
    initial: { size: share.size + 1 },
    send: async (body) => {
      const { tasks } = await unwrap(api.POST(PATH, { params: { path: params }, body: body as never }));
      trackTasks(tasks, scope, {
        busy: `Extending file share ${share.name}`,
        done: `Extended file share ${share.name} to ${formatGib(Number(body['size']))}`,
        link: { to: scope.path('file-shares', share.id), text: 'Open' },
      });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('file-shares', share.id) });
    },
  });
  const size = form.get('size');
  return (
    <FormDialog
      title={`Extend ${share.name}`}
      form={form}
      submitLabel="Extend"
      call={{ operationId: 'extendFileShare', method: 'POST', path: PATH, params }}
    >
      <Field
        form={form}
        path="size"
        label="New size (GiB)"
        help={`The share has ${formatGib(share.size)} now. Clients stay connected while it grows; it cannot shrink again.`}
      />
      <PricePreview
        path={`/cloud/v1/pricing/${scope.project}/${scope.region}/file_shares`}
        body={
          Number.isInteger(size) && Number(size) > 0
            ? { size, source: 'new-file-share', type_name: share.type_name }
            : null
        }
      />
    </FormDialog>
  );
}
