import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Icon } from '../icons.tsx';
import { useRows } from './use-rows.ts';

interface EditableRowsProps<T> {
  readonly rows: readonly T[];
  readonly set: (rows: readonly T[]) => void;
  readonly newRow: T;
  /** What a row is: the second button is `Remove rule 2`. */
  readonly what: string;
  /** Attributes of the button that adds a row. */
  readonly addButton?: ButtonHTMLAttributes<HTMLButtonElement>;
  /** The controls of a row. `number` is from 1. */
  readonly children: (row: T, replace: (row: T) => void, number: number) => ReactNode;
}

/** Rows of controls, each with a button that removes it, and a button that adds one. */
export function EditableRows<T>({ rows, set, newRow, what, addButton, children }: EditableRowsProps<T>) {
  const { list, add, remove } = useRows({ rows, set, newRow });
  return (
    <div className="rows" ref={list}>
      {rows.map((row, index) => (
        <div key={index} className="rows-item">
          {children(row, (next) => set(rows.map((each, at) => (at === index ? next : each))), index + 1)}
          <button
            type="button"
            className="button quiet icon"
            aria-label={`Remove ${what} ${index + 1}`}
            onClick={() => remove(index)}
          >
            <Icon name="trash" />
          </button>
        </div>
      ))}
      <div>
        <button type="button" className="button small" {...addButton} onClick={add}>
          <Icon name="plus" /> Add
        </button>
      </div>
    </div>
  );
}
