import schema from 'schema:ResizeLoadBalancer';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentBalancer } from './current.tsx';
import { BALANCER, balancerParams, type LoadBalancer } from './data.ts';
import { FlavorField } from './flavor-field.tsx';
import { useBalancerForm } from './use-balancer-form.ts';

export function ResizeLoadBalancer() {
  return <CurrentBalancer>{({ balancer }) => <ResizeDialog balancer={balancer} />}</CurrentBalancer>;
}

function ResizeDialog({ balancer }: { balancer: LoadBalancer }) {
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'resizeLoadBalancer',
      method: 'POST',
      path: `${BALANCER}/resize`,
      params: balancerParams(useScope(), balancer.id),
    },
    schema,
    initial: { flavor: balancer.flavor?.flavor_name },
    isEdit: true,
    sent: ({ flavor }) => ({
      busy: `Changing the flavor of ${balancer.name}`,
      done: `Changed the flavor of ${balancer.name} to ${String(flavor)}`,
    }),
  });
  return (
    <FormDialog title={`Change the flavor of ${balancer.name}`} form={form} submitLabel="Change flavor">
      <FlavorField form={form} />
    </FormDialog>
  );
}
