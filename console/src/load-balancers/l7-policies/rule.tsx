import createSchema from 'schema:CreateL7Rule';
import updateSchema from 'schema:UpdateL7Rule';
import { useState } from 'react';
import { Field } from '../../ui/form/field.tsx';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { RowsField } from '../../ui/form/rows-field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart, CurrentRule } from '../current.tsx';
import type { L7Policy, L7Rule, LoadBalancer } from '../data.ts';
import { fittingRule, hasKey } from '../fitting.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { changedFields, compact, editable } from '../values.ts';
import { policyTitle } from './policy.ts';

const RULES = '/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}/rules';

interface PolicyProps {
  readonly policy: L7Policy;
  readonly balancer: LoadBalancer;
}

export function CreateL7Rule() {
  return (
    <CurrentPart kind="policies">
      {(policy, { balancer }) => <CreateDialog policy={policy} balancer={balancer} />}
    </CurrentPart>
  );
}

function CreateDialog({ policy, balancer }: PolicyProps) {
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'createL7Rule',
      method: 'POST',
      path: RULES,
      params: { ...scopeParams(useScope()), l7policy_id: policy.id },
    },
    schema: createSchema,
    initial: { type: 'PATH', compare_type: 'STARTS_WITH', value: '' },
    toBody: (values) => compact(fittingRule(values)),
    sent: () => ({ busy: 'Creating the rule', done: 'Created the rule', tab: 'listeners' }),
  });
  return (
    <FormDialog title={`Add a rule to ${policyTitle(policy)}`} form={form} submitLabel="Add rule">
      <RuleFields form={form} />
    </FormDialog>
  );
}

export function EditL7Rule() {
  return (
    <CurrentPart kind="policies">
      {(policy, { balancer }) => (
        <CurrentRule policy={policy}>
          {(rule) => <EditDialog policy={policy} balancer={balancer} rule={rule} />}
        </CurrentRule>
      )}
    </CurrentPart>
  );
}

function EditDialog({ policy, balancer, rule }: PolicyProps & { rule: L7Rule }) {
  const [initial] = useState(() => editable(updateSchema, rule));
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'updateL7Rule',
      method: 'PUT',
      path: `${RULES}/{l7rule_id}`,
      params: { ...scopeParams(useScope()), l7policy_id: policy.id, l7rule_id: rule.id },
    },
    schema: updateSchema,
    initial,
    isEdit: true,
    toBody: (values) => changedFields(updateSchema, initial, fittingRule(values)),
    sent: () => ({ busy: 'Updating the rule', done: 'Updated the rule', tab: 'listeners' }),
  });
  return (
    <FormDialog title={`Edit a rule of ${policyTitle(policy)}`} form={form} submitLabel="Save">
      <RuleFields form={form} />
    </FormDialog>
  );
}

function RuleFields({ form }: { form: Form }) {
  return (
    <>
      <div className="field-row">
        <Field form={form} path="type" label="Compare" help="" />
        <Field form={form} path="compare_type" label="How" help="" />
      </div>
      {hasKey(form.get('type')) && (
        <Field form={form} path="key" isRequired label="Name of the header, cookie or field" help="" />
      )}
      <Field form={form} path="value" label="With" />
      <Field form={form} path="invert" label="Match requests that do not" help="" />
      <RowsField form={form} path="tags" label="Labels" help="" columns={[{ label: 'Label' }]} />
    </>
  );
}
