import schema from 'schema:ExtendVolume';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { formatGib } from '../ui/numbers.ts';
import { PricePreview } from '../ui/price.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentVolume, KIND, newVolumePrice, VOLUME, type Volume, volumeParams } from './data.ts';

const PATH = `${VOLUME}/extend` as const;

export function ExtendVolume() {
  return <CurrentVolume>{(volume) => <ExtendDialog volume={volume} />}</CurrentVolume>;
}

function ExtendDialog({ volume }: { volume: Volume }) {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'extendVolume', method: 'POST', path: PATH, params: volumeParams(scope, volume.id) },
    // The operation requires more than the current size.
    schema: { ...schema, properties: { size: { ...schema.properties?.['size'], minimum: volume.size + 1 } } },
    initial: { size: volume.size + 1 },
    queryKind: KIND,
    sent: ({ size }) => ({
      busy: `Extending volume ${volume.name}`,
      done: `Extended volume ${volume.name} to ${formatGib(Number(size))}`,
      link: { to: scope.path('volumes', volume.id), text: 'Open' },
      to: scope.path('volumes', volume.id),
    }),
  });
  return (
    <FormDialog title={`Extend ${volume.name}`} form={form} submitLabel="Extend">
      <Field
        form={form}
        path="size"
        label="New size (GiB)"
        help={`The volume has ${formatGib(volume.size)} now. It cannot shrink again.`}
      />
      <PricePreview kind="volumes" body={newVolumePrice(form.get('size'), volume.volume_type)} />
    </FormDialog>
  );
}
