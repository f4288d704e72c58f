import { type ReactNode, useEffect, useId } from 'react';
import type { ControlProps } from './control.ts';
import { isNullable, isRequired, type JsonSchema, plain, schemaAt } from './schema.ts';
import { TagsInput } from './tags-input.tsx';
import type { Form } from './use-form.ts';

interface Choice {
  readonly value: string;
  readonly label: string;
}

interface FieldProps {
  readonly form: Form;
  /** Path in the request body, such as `network.network_id`. */
  readonly path: string;
  readonly label: string;
  /** Replaces the description of the schema; an empty text shows none. */
  readonly help?: ReactNode;
  /** Choices of a select: for IDs of other resources. Enums have theirs from the schema. */
  readonly choices?: readonly Choice[];
  readonly type?: 'password' | 'textarea';
  readonly placeholder?: string;
  readonly disabled?: boolean;
  /** Of a field that other fields make required. By default as in the schema. */
  readonly isRequired?: boolean;
}

/** A labelled control for one field of the request; the schema decides which control, its bounds and its help. */
export function Field(props: FieldProps) {
  const { form, path, label } = props;
  const id = useId();
  const schema = schemaAt(form.schema, path) ?? {};
  const errors = form.errorsAt(path);
  // It may also be the message of the error.
  const description = plain(schema.description ?? '');
  useEffect(() => form.register(path));
  const required = props.isRequired ?? isRequired(form.schema, path);
  const isCheck = schema.type === 'boolean';
  const control: ControlProps = {
    id,
    'aria-describedby': `${id}-help ${id}-error`,
    'aria-invalid': errors.length > 0,
    required,
    disabled: props.disabled,
  };
  const title = (
    <label htmlFor={id}>
      {label} {!required && !isCheck && !form.isEdit && <span className="optional">(optional)</span>}
    </label>
  );
  return (
    <div className={isCheck ? 'field check' : 'field'}>
      {isCheck ? (
        <>
          {controlOf(schema, props, control)}
          {title}
        </>
      ) : (
        <>
          {title}
          {controlOf(schema, props, control)}
        </>
      )}
      <p id={`${id}-help`} className="help">
        {errors.includes(description) ? '' : (props.help ?? description)}
      </p>
      <FieldErrors id={`${id}-error`} errors={errors} />
    </div>
  );
}

export function FieldErrors({ id, errors }: { id: string; errors: readonly string[] }) {
  return (
    <div id={id} className="error" role="alert" hidden={errors.length === 0}>
      {errors.map((error) => (
        <p key={error}>{error}</p>
      ))}
    </div>
  );
}

function controlOf(schema: JsonSchema, props: FieldProps, control: ControlProps): ReactNode {
  const { form, path, choices, type } = props;
  const value = form.get(path);
  const options = choices ?? schema.enum?.map((each) => ({ value: String(each), label: String(each) }));
  if (options) return <Select {...props} control={control} options={options} />;
  if (schema.type === 'boolean') {
    const onChange = (event: { target: HTMLInputElement }) => form.set(path, event.target.checked);
    return <input {...control} required={false} type="checkbox" checked={value === true} onChange={onChange} />;
  }
  if (schema.type === 'object' && !schema.properties) return <TagsInput {...props} control={control} />;
  if (schema.type === 'integer' || schema.type === 'number')
    return <NumberInput {...props} control={control} schema={schema} />;
  const text = {
    ...control,
    value: typeof value === 'string' ? value : '',
    placeholder: props.placeholder,
    spellCheck: false,
    onChange: (event: { target: { value: string } }) => form.set(path, event.target.value),
  };
  if (type === 'textarea') return <textarea {...text} />;
  return (
    <input {...text} type={type ?? 'text'} dir="auto" autoComplete={type === 'password' ? 'new-password' : 'off'} />
  );
}

type Inner = FieldProps & { control: ControlProps };

function Select({ form, path, control, options }: Inner & { options: readonly Choice[] }) {
  const value = form.get(path);
  const schema = schemaAt(form.schema, path);
  const isNumber = schema?.type === 'integer' || typeof schema?.enum?.[0] === 'number';
  const set = (text: string) => form.set(path, text === '' ? undefined : isNumber ? Number(text) : text);
  const text = value === undefined || value === null ? '' : String(value);
  // A field of an existing resource can be emptied only if the API has null for it.
  const canBeEmpty = !control.required && (!form.isEdit || isNullable(form.schema, path));
  return (
    <select {...control} value={text} onChange={(event) => set(event.target.value)}>
      {(canBeEmpty || text === '') && <option value="">{control.required ? 'Choose…' : 'Default'}</option>}
      {text !== '' && !options.some((option) => option.value === text) && <option>{text}</option>}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

function NumberInput({ form, path, control, schema, placeholder }: Inner & { schema: JsonSchema }) {
  const value = form.get(path);
  const exclusive = schema.exclusiveMinimum === undefined ? undefined : schema.exclusiveMinimum + 1;
  // Text that is not a number stays as typed, and the validation names it.
  const set = (text: string) => form.set(path, text === '' || Number.isNaN(Number(text)) ? text : Number(text));
  return (
    <input
      {...control}
      type="number"
      inputMode={schema.type === 'integer' ? 'numeric' : 'decimal'}
      min={schema.minimum ?? exclusive}
      max={schema.maximum}
      step={schema.type === 'integer' ? 1 : 'any'}
      value={value === undefined || value === null ? '' : String(value)}
      placeholder={placeholder}
      onChange={(event) => set(event.target.value)}
    />
  );
}
