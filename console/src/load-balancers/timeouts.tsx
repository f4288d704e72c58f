import { Field } from '../ui/form/field.tsx';
import type { Form } from '../ui/form/use-form.ts';

/** The timeouts of a listener or pool. `prefix` ends with a dot, or is empty. */
export function Timeouts({ form, prefix, defaults }: { form: Form; prefix: string; defaults: string }) {
  return (
    <>
      <div className="field-row">
        <Field form={form} path={`${prefix}timeout_client_data`} label="Client timeout (ms)" help="" />
        <Field form={form} path={`${prefix}timeout_member_connect`} label="Connect timeout (ms)" help="" />
        <Field form={form} path={`${prefix}timeout_member_data`} label="Member timeout (ms)" help="" />
      </div>
      <p className="muted">{defaults}</p>
    </>
  );
}
