import { useEffect, useId, useState } from 'react';
import { formatBytes } from '../numbers.ts';
import { FieldErrors } from './field.tsx';
import { schemaAt } from './schema.ts';
import type { Form } from './use-form.ts';

interface FileFieldProps {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly help: string;
}

/** A file whose content is sent in Base64. */
export function FileField({ form, path, label, help }: FileFieldProps) {
  const id = useId();
  const [failure, setFailure] = useState<string[]>([]);
  // A file that was not read is also a missing value.
  const errors = failure.length > 0 ? failure : form.errorsAt(path);
  // Base64 has four characters for three bytes.
  const largest = Math.floor(((schemaAt(form.schema, path)?.maxLength ?? Infinity) / 4) * 3);
  useEffect(() => form.register(path));
  async function read(file: File | undefined): Promise<void> {
    setFailure([]);
    form.set(path, undefined);
    if (!file) return;
    // Before it is read: gigabytes would end the page.
    if (file.size > largest)
      return setFailure([`must have at most ${formatBytes(largest)}, but has ${formatBytes(file.size)}`]);
    try {
      form.set(path, base64Of(new Uint8Array(await file.arrayBuffer())));
    } catch {
      setFailure(['the browser could not read the file']);
    }
  }
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="file"
        aria-describedby={`${id}-help ${id}-error`}
        aria-invalid={errors.length > 0}
        onChange={({ target }) => void read(target.files?.[0])}
      />
      <p id={`${id}-help`} className="help">
        {help}
      </p>
      <FieldErrors id={`${id}-error`} errors={errors} />
    </div>
  );
}

function base64Of(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}
