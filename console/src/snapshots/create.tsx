import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import schema from 'schema:CreateSnapshot';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { NoneYet } from '../ui/form/none-yet.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { formatGib } from '../ui/numbers.ts';
import { PricePreview } from '../ui/price.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { volumesQuery } from '../volumes/data.ts';
import { KIND } from './data.ts';

const PATH = '/cloud/v1/snapshots/{project_id}/{region_id}';

export function CreateSnapshot() {
  const scope = useScope();
  return <CreateDialog back={scope.path('snapshots')} />;
}

/** The form on the page of a volume. */
export function CreateVolumeSnapshot() {
  const scope = useScope();
  const { id } = useParams({ strict: false }) as { id: string };
  return <CreateDialog volumeId={id} back={scope.path('volumes', id)} />;
}

function CreateDialog({ volumeId, back }: { volumeId?: string; back: string }) {
  const scope = useScope();
  const volumesRead = useQuery(volumesQuery(scope)).data?.results;
  const volumes = volumesRead ?? [];
  const form = useRequestForm({
    call: { operationId: 'createSnapshot', method: 'POST', path: PATH, params: scopeParams(scope) },
    schema,
    initial: { name: '', ...(volumeId ? { volume_id: volumeId } : {}) },
    queryKind: KIND,
    sent: ({ name }) => ({
      busy: `Creating snapshot ${String(name)}`,
      done: `Created snapshot ${String(name)}`,
      link: { to: scope.path('snapshots'), text: 'Snapshots' },
      to: back,
      search: { tab: volumeId && 'snapshots' },
    }),
  });
  const chosen = form.get('volume_id');
  return (
    <FormDialog title="Create snapshot" form={form} submitLabel="Create snapshot">
      <Field
        form={form}
        path="volume_id"
        label="Volume"
        help={
          volumesRead?.length === 0 ? (
            <NoneYet text="The project has no volume yet." to={scope.path('volumes', 'new')} action="Create a volume" />
          ) : (
            'The volume can be used while it is copied.'
          )
        }
        disabled={volumeId !== undefined}
        choices={volumes.map(({ id, name, size }) => ({ value: id, label: `${name} (${formatGib(size)})` }))}
      />
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="description" label="Description" help="" type="textarea" />
      <Field form={form} path="tags" label="Tags" help="" />
      <PricePreview kind="snapshots" body={chosen ? { volume_id: chosen } : null} />
    </FormDialog>
  );
}
