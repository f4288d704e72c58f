import { useState } from 'react';
import type { ControlProps } from './control.ts';
import { EditableRows } from './editable-rows.tsx';
import type { Form } from './use-form.ts';

type Row = readonly [key: string, value: string];

const EMPTY: Row = ['', ''];

interface TagsInputProps {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly control: ControlProps;
}

/** A map of text to text as rows of key and value. Empty rows are not sent and are not a change of the form. */
export function TagsInput({ form, path, label, control }: TagsInputProps) {
  const [rows, setRows] = useState<readonly Row[]>(() => Object.entries((form.get(path) as object | undefined) ?? {}));
  const emptyValue = form.isEdit ? {} : undefined;
  function change(next: readonly Row[]): void {
    setRows(next);
    const filled = next.filter(([key, value]) => key !== '' || value !== '');
    form.set(path, filled.length === 0 ? emptyValue : Object.fromEntries(filled));
  }
  const keys = rows.map(([key]) => key);
  const repeated = keys.find((key, index) => key !== '' && keys.indexOf(key) !== index);
  const isFaulty = (key: string) => form.errorsAt(`${path}.${key}`).length > 0;
  // Such as too many rows.
  const areAllFaulty = control['aria-invalid'] && !keys.some(isFaulty);
  return (
    <div role="group" aria-describedby={control['aria-describedby']}>
      <EditableRows
        rows={rows}
        set={change}
        newRow={EMPTY}
        what="row"
        addButton={{ id: control.id, 'aria-label': `Add to ${label}` }}
      >
        {([key, value], replace, number) => (
          <>
            <input
              aria-label={`Key ${number}`}
              aria-invalid={areAllFaulty || isFaulty(key)}
              placeholder="Key"
              dir="auto"
              value={key}
              onChange={({ target }) => replace([target.value, value])}
            />
            <input
              aria-label={`Value ${number}`}
              aria-invalid={isFaulty(key)}
              placeholder="Value"
              dir="auto"
              value={value}
              onChange={({ target }) => replace([key, target.value])}
            />
          </>
        )}
      </EditableRows>
      {repeated !== undefined && (
        <p className="error" role="alert">
          The key <bdi>{repeated}</bdi> is listed twice; its last value is sent
        </p>
      )}
    </div>
  );
}
