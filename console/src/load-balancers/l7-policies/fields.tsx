import { Field } from '../../ui/form/field.tsx';
import { RowsField } from '../../ui/form/rows-field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import type { LbPool } from '../data.ts';
import { targetsOf } from './policy.ts';

const ACTIONS = [
  { value: 'REDIRECT_TO_POOL', label: 'Send to a pool' },
  { value: 'REDIRECT_TO_URL', label: 'Redirect to a URL' },
  { value: 'REDIRECT_PREFIX', label: 'Redirect to another prefix' },
  { value: 'REJECT', label: 'Reject (403)' },
];
/** The settings of an L7 policy. */
export function PolicyFields({ form, pools }: { form: Form; pools: readonly LbPool[] }) {
  const has = (name: string) => targetsOf(form.get('action')).includes(name);
  return (
    <>
      <Field form={form} path="name" label="Name" help="" />
      <Field form={form} path="action" label="Requests that match all rules" help="" choices={ACTIONS} />
      {has('redirect_pool_id') && (
        <Field
          form={form}
          path="redirect_pool_id"
          isRequired
          label="Pool"
          help={pools.length === 0 ? 'The load balancer has no pool yet.' : ''}
          choices={pools.map(({ id, name }) => ({ value: id, label: name }))}
        />
      )}
      {has('redirect_url') && (
        <Field form={form} path="redirect_url" isRequired label="URL" help="" placeholder="https://example.com/" />
      )}
      {has('redirect_prefix') && (
        <Field
          form={form}
          path="redirect_prefix"
          isRequired
          label="Prefix"
          help="The path and query of the request are appended."
          placeholder="https://example.com"
        />
      )}
      {has('redirect_http_code') && (
        <Field form={form} path="redirect_http_code" label="Status" help="302 by default." />
      )}
      <Field
        form={form}
        path="position"
        label="Position"
        help="Among the policies of the listener, from 1. The first that matches decides."
      />
      <RowsField form={form} path="tags" label="Labels" help="" columns={[{ label: 'Label' }]} />
    </>
  );
}
