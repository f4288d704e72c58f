import { useState } from 'react';
import { Icon } from '../icons.tsx';
import type { ControlProps } from './control.ts';
import { useFocusAdded } from './use-focus-added.ts';
import type { Form } from './use-form.ts';

type Row = readonly [key: string, value: string];

/** A map of text to text as rows of key and value. Rows without a key are not sent. */
export function TagsInput({ form, path, control }: { form: Form; path: string; control: ControlProps }) {
  const [rows, setRows] = useState<readonly Row[]>(() => Object.entries((form.get(path) as object | undefined) ?? {}));
  function change(next: readonly Row[]): void {
    setRows(next);
    const named = next.filter(([key]) => key !== '');
    form.set(path, named.length === 0 ? undefined : Object.fromEntries(named));
  }
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
      <div>
        <button id={control.id} type="button" className="button small" onClick={add}>
          <Icon name="plus" /> Add
        </button>
      </div>
    </div>
  );
}
