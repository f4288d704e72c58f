import schema from 'schema:UpdateL7Policy';
import { useState } from 'react';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { type Current, CurrentPart } from '../current.tsx';
import type { L7Policy } from '../data.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { changedFields, editable } from '../values.ts';
import { PolicyFields } from './fields.tsx';
import { actionOf, policyCall, policyTitle, withTarget } from './policy.ts';

export function EditL7Policy() {
  return (
    <CurrentPart kind="policies">{(policy, current) => <EditDialog policy={policy} current={current} />}</CurrentPart>
  );
}

function EditDialog({ policy, current: { balancer, tree } }: { policy: L7Policy; current: Current }) {
  const title = policyTitle(policy);
  const [initial] = useState(() => editable(schema, policy));
  const form = useBalancerForm(balancer.id, {
    call: policyCall(scopeParams(useScope()), policy.id),
    schema,
    initial,
    isEdit: true,
    // The action and its target are always sent.
    toBody: (values) => withTarget({ ...changedFields(schema, initial, values), ...actionOf(values) }),
    sent: () => ({ busy: `Updating ${title}`, done: `Updated ${title}`, tab: 'listeners' }),
  });
  return (
    <FormDialog title={`Edit ${title}`} form={form} submitLabel="Save">
      <PolicyFields form={form} pools={tree.pools} />
    </FormDialog>
  );
}
