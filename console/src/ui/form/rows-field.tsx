import { useEffect, useId } from 'react';
import { EditableRows } from './editable-rows.tsx';
import { FieldErrors } from './field.tsx';
import type { Form } from './use-form.ts';

interface RowColumn {
  /** Property of a row; without one, rows are texts and this is the only column. */
  readonly key?: string;
  /** Its number follows: `DNS server` is `DNS server 1`. */
  readonly label: string;
  readonly placeholder?: string;
}

interface RowsFieldProps {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly help: string;
  readonly columns: readonly RowColumn[];
}

type Row = string | Readonly<Record<string, string>>;

/** A list of texts, or of objects of texts, as rows with an "Add" button. */
export function RowsField({ form, path, label, help, columns }: RowsFieldProps) {
  const id = useId();
  const rows = (form.get(path) as readonly Row[] | null | undefined) ?? [];
  const set = (next: readonly Row[]) => form.set(path, next);
  useEffect(() => form.register(path));
  const empty: Row = columns[0]?.key === undefined ? '' : Object.fromEntries(columns.map(({ key }) => [key!, '']));
  return (
    <fieldset className="field" aria-describedby={`${id}-help ${id}-error`}>
      <legend>
        {label} {!form.isEdit && <span className="optional">(optional)</span>}
      </legend>
      <EditableRows rows={rows} set={set} newRow={empty} what={label}>
        {(row, replace, number) =>
          columns.map((column) => (
            <input
              key={column.label}
              aria-label={`${column.label} ${number}`}
              aria-invalid={form.errorsAt(`${path}.${number - 1}`).length > 0}
              aria-describedby={`${id}-error`}
              placeholder={column.placeholder}
              spellCheck={false}
              value={textAt(row, column)}
              onChange={({ target }) => replace(withText(row, column, target.value))}
            />
          ))
        }
      </EditableRows>
      <p id={`${id}-help`} className="help">
        {help}
      </p>
      <FieldErrors id={`${id}-error`} errors={form.errorsAt(path)} />
    </fieldset>
  );
}

function textAt(row: Row, { key }: RowColumn): string {
  return typeof row === 'string' ? row : (row[key!] ?? '');
}

function withText(row: Row, { key }: RowColumn, text: string): Row {
  return typeof row === 'string' ? text : { ...row, [key!]: text };
}
