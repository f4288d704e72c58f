import { useEffect } from 'react';
import { FieldErrors } from '../../ui/form/field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { Icon } from '../../ui/icons.tsx';

interface User {
  readonly username: string;
  readonly encrypted_password: string;
}

const MAX_USERS = 3;

/** Users for HTTP basic authentication. The API takes hashes only. */
export function UserFields({ form, path }: { form: Form; path: string }) {
  const users = (form.get(path) as readonly User[] | undefined) ?? [];
  useEffect(() => form.register(path));
  const set = (next: readonly User[]) => form.set(path, next);
  const replace = (index: number, user: User) => set(users.map((each, at) => (at === index ? user : each)));
  const control = (index: number, name: keyof User, label: string, placeholder: string) => (
    <input
      aria-label={`${label} ${index + 1}`}
      aria-invalid={form.errorsAt(`${path}.${index}.${name}`).length > 0}
      aria-describedby="users-error"
      placeholder={placeholder}
      autoComplete="off"
      spellCheck={false}
      dir="auto"
      value={users[index]![name]}
      onChange={(event) => replace(index, { ...users[index]!, [name]: event.target.value })}
    />
  );
  return (
    <fieldset className="field" aria-describedby="users-help users-error">
      <legend>
        Basic authentication <span className="optional">(optional)</span>
      </legend>
      <div className="rows">
        {users.map((_, index) => (
          <div key={index} className="rows-item">
            {control(index, 'username', 'User', 'name')}
            {control(index, 'encrypted_password', 'Password hash', '$6$…')}
            <button
              type="button"
              className="button quiet icon"
              aria-label={`Remove user ${index + 1}`}
              onClick={() => set(users.filter((_each, at) => at !== index))}
            >
              <Icon name="trash" />
            </button>
          </div>
        ))}
        {users.length < MAX_USERS && (
          <div>
            <button
              type="button"
              className="button small"
              onClick={() => set([...users, { username: '', encrypted_password: '' }])}
            >
              <Icon name="plus" /> Add user
            </button>
          </div>
        )}
      </div>
      <p id="users-help" className="help">
        Clients need one of these names and its password. Hash the password with <code>mkpasswd -m sha-512</code>.
      </p>
      <FieldErrors id="users-error" errors={form.errorsAt(path)} />
    </fieldset>
  );
}
