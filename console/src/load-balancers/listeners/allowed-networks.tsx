import { useId } from 'react';
import { RowsField } from '../../ui/form/rows-field.tsx';
import type { Form } from '../../ui/form/use-form.ts';

/** Who may connect: everyone, or the listed networks; an empty list is nobody. */
export function AllowedNetworks({ form, path }: { form: Form; path: string }) {
  const id = useId();
  const isLimited = Array.isArray(form.get(path));
  return (
    <>
      <div className="field">
        <label htmlFor={id}>Who may connect</label>
        <select
          id={id}
          value={isLimited ? 'listed' : 'all'}
          onChange={({ target }) => form.set(path, target.value === 'all' ? undefined : [])}
        >
          <option value="all">Everyone</option>
          <option value="listed">Listed addresses only</option>
        </select>
      </div>
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
