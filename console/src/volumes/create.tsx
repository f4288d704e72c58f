import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import emptySchema from 'schema:CreateNewVolume';
import copySchema from 'schema:CreateVolumeFromSnapshot';
import { useState } from 'react';
import { type Snapshot, snapshotsQuery } from '../snapshots/data.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { SelectField } from '../ui/form/select-field.tsx';
import { type Form, type Values, withoutEmpty } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { formatGib } from '../ui/numbers.ts';
import { PricePreview } from '../ui/price.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { formatDate, parseDate } from '../ui/time.tsx';
import { KIND, newVolumePrice, volumesQuery, volumeTypesQuery } from './data.ts';

const PATH = '/cloud/v1/volumes/{project_id}/{region_id}';
const SOURCES = { 'new-volume': 'empty', snapshot: 'a snapshot' } as const;
type Source = keyof typeof SOURCES;

export function CreateVolume() {
  const scope = useScope();
  // The page of a snapshot opens the form for it.
  const { snapshot } = useSearch({ strict: false }) as { snapshot?: string };
  const [source, setSource] = useState<Source>(snapshot ? 'snapshot' : 'new-volume');
  const copyOf = useCopyOf(source);
  const form = useRequestForm({
    call: { operationId: 'createVolume', method: 'POST', path: PATH, params: scopeParams(scope) },
    schema: source === 'snapshot' ? copySchema : emptySchema,
    initial: { name: '', size: 10, ...(snapshot ? { snapshot_id: snapshot } : {}) },
    toBody: (values) => toBody(values, source, copyOf),
    queryKind: KIND,
    sent: ({ name }) => ({
      busy: `Creating volume ${String(name)}`,
      done: `Created volume ${String(name)}`,
      link: { to: scope.path('volumes'), text: 'Volumes' },
      to: scope.path('volumes'),
    }),
  });
  return (
    <FormDialog title="Create volume" form={form} submitLabel="Create volume">
      <Field form={form} path="name" label="Name" />
      <SelectField label="Source" value={source} set={setSource} texts={SOURCES} />
      <SourceFields form={form} source={source} />
      <Field form={form} path="tags" label="Tags" help="" />
      <PricePreview kind="volumes" body={priceOf(form, source)} />
    </FormDialog>
  );
}

function toBody(values: Values, source: Source, copyOf: (snapshot: unknown) => Values): Values {
  const { size, snapshot_id, ...rest } = values;
  const own = source === 'snapshot' ? { ...copyOf(snapshot_id), snapshot_id } : { size };
  return withoutEmpty({ ...own, ...rest, source });
}

/**
 * The size and the type that a volume from a snapshot has by default. The request names them: without them, the code for
 * Terraform would plan to remove those of the response.
 */
function useCopyOf(source: Source): (snapshotId: unknown) => Values {
  const scope = useScope();
  const enabled = source === 'snapshot';
  const snapshots = useQuery({ ...snapshotsQuery(scope), enabled }).data?.results ?? [];
  const volumes = useQuery({ ...volumesQuery(scope), enabled }).data?.results ?? [];
  const offered = useQuery({ ...volumeTypesQuery(scope), enabled }).data ?? [];
  return (snapshotId) => {
    const snapshot = snapshots.find(({ id }) => id === snapshotId);
    const type = volumes.find(({ id }) => id === snapshot?.volume_id)?.volume_type;
    // A type that is not offered any more is the default only.
    return { size: snapshot?.size, type_name: offered.find((each) => each === type) };
  };
}

function priceOf(form: Form, source: Source): Record<string, unknown> | null {
  const type = form.get('type_name') as string | undefined;
  if (source === 'new-volume') return newVolumePrice(form.get('size'), type ?? 'standard');
  const snapshot = form.get('snapshot_id');
  return snapshot ? { source, snapshot_id: snapshot, ...(type ? { type_name: type } : {}) } : null;
}

function SourceFields({ form, source }: { form: Form; source: Source }) {
  const scope = useScope();
  const types = useQuery(volumeTypesQuery(scope)).data ?? [];
  const snapshots = useQuery({ ...snapshotsQuery(scope), enabled: source === 'snapshot' }).data?.results ?? [];
  return (
    <>
      {source === 'snapshot' && (
        <Field
          form={form}
          path="snapshot_id"
          label="Snapshot"
          help="The volume gets the size and the data of the snapshot."
          choices={snapshots.filter(({ status }) => status === 'available').map(toChoice)}
        />
      )}
      <div className="field-row">
        {source === 'new-volume' && (
          <Field form={form} path="size" label="Size (GiB)" help="The volume can be extended later, not shrunk." />
        )}
        <Field
          form={form}
          path="type_name"
          label="Type"
          help={source === 'snapshot' ? 'By default that of the snapshot.' : 'By default standard.'}
          choices={types.map((type) => ({ value: type, label: type }))}
        />
      </div>
    </>
  );
}

function toChoice({ id, name, size, created_at }: Snapshot) {
  return { value: id, label: `${name} (${formatGib(size)}, ${formatDate(parseDate(created_at))})` };
}
