import { useEffect } from 'react';
import { FieldErrors } from '../ui/form/field.tsx';
import { useFocusAdded } from '../ui/form/use-focus-added.ts';
import type { Form } from '../ui/form/use-form.ts';
import { Icon } from '../ui/icons.tsx';

interface Access {
  readonly access_mode: 'ro' | 'rw';
  readonly ip_address: string;
}

/** The initial access rules as rows. */
export function AccessFields({ form }: { form: Form }) {
  const rows = (form.get('access') as readonly Access[] | undefined) ?? [];
  const set = (next: readonly Access[]) => form.set('access', next);
  useEffect(() => form.register('access'));
  const { list, added } = useFocusAdded();
  const add = () => {
    set([...rows, { access_mode: 'rw', ip_address: '' }]);
    added();
  };
  const replace = (index: number, row: Access) => set(rows.map((each, at) => (at === index ? row : each)));
  return (
    <fieldset className="field" aria-describedby="access-help access-error">
      <legend>
        Access <span className="optional">(optional)</span>
      </legend>
      <div className="rows" ref={list}>
        {rows.map((row, index) => (
          <div key={index} className="rows-item">
            <input
              aria-label={`Address or network ${index + 1}`}
              aria-invalid={form.errorsAt(`access.${index}`).length > 0}
              aria-describedby="access-error"
              placeholder="10.0.0.0/24"
              spellCheck={false}
              value={row.ip_address}
              onChange={(event) => replace(index, { ...row, ip_address: event.target.value })}
            />
            <select
              aria-label={`Access ${index + 1}`}
              value={row.access_mode}
              onChange={(event) => replace(index, { ...row, access_mode: event.target.value as 'ro' | 'rw' })}
            >
              <option value="rw">read and write</option>
              <option value="ro">read only</option>
            </select>
            <button
              type="button"
              className="button quiet icon"
              aria-label={`Remove rule ${index + 1}`}
              onClick={() => set(rows.filter((_, at) => at !== index))}
            >
              <Icon name="trash" />
            </button>
          </div>
        ))}
        <div>
          <button type="button" className="button small" onClick={add}>
            <Icon name="plus" /> Add
          </button>
        </div>
      </div>
      <p id="access-help" className="help">
        Addresses and networks that may mount the share. Without a rule, no client can mount it.
      </p>
      <FieldErrors id="access-error" errors={form.errorsAt('access')} />
    </fieldset>
  );
}
