import { useEffect } from 'react';
import { EditableRows } from '../ui/form/editable-rows.tsx';
import { FieldErrors } from '../ui/form/field.tsx';
import type { Form } from '../ui/form/use-form.ts';

interface Access {
  readonly access_mode: 'ro' | 'rw';
  readonly ip_address: string;
}

const NEW: Access = { access_mode: 'rw', ip_address: '' };

/** The initial access rules as rows. */
export function AccessFields({ form }: { form: Form }) {
  const rows = (form.get('access') as readonly Access[] | undefined) ?? [];
  const set = (next: readonly Access[]) => form.set('access', next);
  useEffect(() => form.register('access'));
  return (
    <fieldset className="field" aria-describedby="access-help access-error">
      <legend>
        Access <span className="optional">(optional)</span>
      </legend>
      <EditableRows rows={rows} set={set} newRow={NEW} what="rule">
        {(row, replace, number) => (
          <>
            <input
              aria-label={`Address or network ${number}`}
              aria-invalid={form.errorsAt(`access.${number - 1}`).length > 0}
              aria-describedby="access-error"
              placeholder="10.0.0.0/24"
              spellCheck={false}
              value={row.ip_address}
              onChange={({ target }) => replace({ ...row, ip_address: target.value })}
            />
            <select
              aria-label={`Access ${number}`}
              value={row.access_mode}
              onChange={({ target }) => replace({ ...row, access_mode: target.value as Access['access_mode'] })}
            >
              <option value="rw">read and write</option>
              <option value="ro">read only</option>
            </select>
          </>
        )}
      </EditableRows>
      <p id="access-help" className="help">
        Addresses and networks that may mount the share. Without a rule, no client can mount it.
      </p>
      <FieldErrors id="access-error" errors={form.errorsAt('access')} />
    </fieldset>
  );
}
