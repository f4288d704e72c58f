import { useState } from 'react';
import { Icon } from '../icons.tsx';
import type { ControlProps } from './control.ts';
import { useFocusAdded } from './use-focus-added.ts';
import type { Form } from './use-form.ts';

type Row = readonly [key: string, value: string];

interface TagsInputProps {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly control: ControlProps;
}

/** A map of text to text as rows of key and value. Empty rows are not sent. */
export function TagsInput({ form, path, label, control }: TagsInputProps) {
  const [rows, setRows] = useState<readonly Row[]>(() => Object.entries((form.get(path) as object | undefined) ?? {}));
  function change(next: readonly Row[]): void {
    setRows(next);
    const filled = next.filter(([key, value]) => key !== '' || value !== '');
    form.set(path, filled.length === 0 ? undefined : Object.fromEntries(filled));
  }
  const keys = rows.map(([key]) => key);
  const repeated = keys.find((key, index) => key !== '' && keys.indexOf(key) !== index);
  const { list, added } = useFocusAdded();
  const add = () => {
    change([...rows, ['', '']]);
    added();
  };
  const replace = (index: number, row: Row) => change(rows.map((each, at) => (at === index ? row : each)));
  return (
    <div className="rows" ref={list} role="group" aria-describedby={control['aria-describedby']}>
      {rows.map(([key, value], index) => (
        <div key={index} className="rows-item">
          <input
            aria-label={`Key ${index + 1}`}
            aria-invalid={control['aria-invalid']}
            placeholder="Key"
            dir="auto"
            value={key}
            onChange={(event) => replace(index, [event.target.value, value])}
          />
          <input
            aria-label={`Value ${index + 1}`}
            placeholder="Value"
            dir="auto"
            value={value}
            onChange={(event) => replace(index, [key, event.target.value])}
          />
          <button
            type="button"
            className="button quiet icon"
            aria-label={`Remove row ${index + 1}`}
            onClick={() => change(rows.filter((_, at) => at !== index))}
          >
            <Icon name="trash" />
          </button>
        </div>
      ))}
      {repeated !== undefined && (
        <p className="error" role="alert">
          The key <bdi>{repeated}</bdi> is listed twice; its last value is sent
        </p>
      )}
      <div>
        <button id={control.id} type="button" className="button small" aria-label={`Add to ${label}`} onClick={add}>
          <Icon name="plus" /> Add
        </button>
      </div>
    </div>
  );
}
