import { DateField } from '../ui/form/date-field.tsx';
import { Field } from '../ui/form/field.tsx';
import { RowsField } from '../ui/form/rows-field.tsx';
import type { Form } from '../ui/form/use-form.ts';

const CONTAINER_COLUMNS = [
  { key: 'namespace', label: 'Namespace', placeholder: 'namespace' },
  { key: 'name', label: 'Container', placeholder: 'name' },
];

/** The fields that a new key and an edited one have. */
export function KeyFields({ form }: { form: Form }) {
  return (
    <>
      <RowsField
        form={form}
        path="containers"
        label="Containers"
        help="Namespace and name of each container that the key opens. Without one it opens none."
        columns={CONTAINER_COLUMNS}
      />
      <DateField form={form} path="expire" label="Expires" help="Without a date, the key does not expire." />
      <Field form={form} path="description" label="Description" type="textarea" help="" />
    </>
  );
}
