import schema from 'schema:ExtendFileShare';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { formatGib } from '../ui/numbers.ts';
import { PricePreview } from '../ui/price.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentShare, type FileShare, KIND, newSharePrice, SHARE, shareParams } from './data.ts';

const PATH = `${SHARE}/extend`;

export function ExtendFileShare() {
  return <CurrentShare>{(share) => <ExtendDialog share={share} />}</CurrentShare>;
}

function ExtendDialog({ share }: { share: FileShare }) {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'extendFileShare', method: 'POST', path: PATH, params: shareParams(scope, share.id) },
    // The operation requires more than the current size.
    schema: { ...schema, properties: { size: { ...schema.properties?.['size'], minimum: share.size + 1 } } },
    initial: { size: share.size + 1 },
    queryKind: KIND,
    sent: ({ size }) => ({
      busy: `Extending file share ${share.name}`,
      done: `Extended file share ${share.name} to ${formatGib(Number(size))}`,
      link: { to: scope.path('file-shares', share.id), text: 'Open' },
      to: scope.path('file-shares', share.id),
    }),
  });
  return (
    <FormDialog title={`Extend ${share.name}`} form={form} submitLabel="Extend">
      <Field
        form={form}
        path="size"
        label="New size (GiB)"
        help={`The share has ${formatGib(share.size)} now. Clients stay connected while it grows; it cannot shrink again.`}
      />
      <PricePreview kind="file_shares" body={newSharePrice(form.get('size'), share.type_name)} />
    </FormDialog>
  );
}
