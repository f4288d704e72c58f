import schema from 'schema:CreateL7Policy';
import { Field } from '../../ui/form/field.tsx';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { type Current, CurrentBalancer } from '../current.tsx';
import { hasHeaders } from '../listeners/protocols.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { compact } from '../values.ts';
import { PolicyFields } from './fields.tsx';
import { withTarget } from './policy.ts';

export function CreateL7Policy() {
  return <CurrentBalancer>{(current) => <CreateDialog {...current} />}</CurrentBalancer>;
}

function CreateDialog({ balancer, tree }: Current) {
  const listeners = tree.listeners.filter(({ protocol }) => hasHeaders(protocol));
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'createL7Policy',
      method: 'POST',
      path: '/cloud/v1/l7policies/{project_id}/{region_id}',
      params: scopeParams(useScope()),
    },
    schema,
    initial: { name: '', listener_id: listeners[0]?.id, action: 'REDIRECT_TO_POOL' },
    toBody: (values) => compact(withTarget(values)),
    sent: () => ({ busy: 'Creating the L7 policy', done: 'Created the L7 policy', tab: 'listeners' }),
  });
  return (
    <FormDialog
      title="Create L7 policy"
      form={form}
      submitLabel="Create policy"
      disabledReason={
        listeners.length > 0 ? null : 'L7 policies need a listener of the protocol HTTP or TERMINATED_HTTPS'
      }
    >
      <Field
        form={form}
        path="listener_id"
        label="Listener"
        help=""
        choices={listeners.map(({ id, name, protocol_port }) => ({ value: id, label: `${name} (${protocol_port})` }))}
      />
      <PolicyFields form={form} pools={tree.pools} />
    </FormDialog>
  );
}
