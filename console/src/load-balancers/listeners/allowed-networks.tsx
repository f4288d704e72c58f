import { RowsField } from '../../ui/form/rows-field.tsx';
import { SelectField } from '../../ui/form/select-field.tsx';
import type { Form } from '../../ui/form/use-form.ts';

/** Who may connect: everyone, or the listed networks; an empty list is nobody. */
export function AllowedNetworks({ form, path }: { form: Form; path: string }) {
  const isLimited = Array.isArray(form.get(path));
  return (
    <>
      <SelectField
        label="Who may connect"
        value={isLimited ? 'listed' : 'all'}
        set={(value) => form.set(path, value === 'all' ? undefined : [])}
        texts={{ all: 'Everyone', listed: 'Listed addresses only' }}
      />
      {isLimited && (
        <RowsField
          form={form}
          path={path}
          label="Addresses and networks"
          help="An empty list allows nobody."
          columns={[{ label: 'Address or network', placeholder: '10.0.0.0/24' }]}
        />
      )}
    </>
  );
}
