import schema from 'schema:CreateListener';
import { Field } from '../../ui/form/field.tsx';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { type Current, CurrentBalancer } from '../current.tsx';
import { fittingListener } from '../fitting.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { compact } from '../values.ts';
import { ListenerFields } from './fields.tsx';
import { hasPool } from './protocols.ts';

export function CreateListener() {
  return <CurrentBalancer>{(current) => <CreateDialog {...current} />}</CurrentBalancer>;
}

function CreateDialog({ balancer, tree }: Current) {
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'createListener',
      method: 'POST',
      path: '/cloud/v1/lblisteners/{project_id}/{region_id}',
      params: scopeParams(useScope()),
    },
    schema,
    initial: { name: '', protocol: 'HTTP', protocol_port: 80 },
    toBody: (values) => compact({ ...fittingListener(values), load_balancer_id: balancer.id }),
    sent: ({ name }) => ({
      busy: `Creating listener ${String(name)}`,
      done: `Created listener ${String(name)}`,
      tab: 'listeners',
    }),
  });
  const free = tree.pools.filter((pool) => pool.listeners.length === 0);
  return (
    <FormDialog title="Create listener" form={form} submitLabel="Create listener">
      <ListenerFields form={form} />
      {hasPool(form.get('protocol')) && free.length > 0 && (
        <Field
          form={form}
          path="default_pool_id"
          label="Default pool"
          help="Pools that no listener uses. A pool can also be created afterwards."
          choices={free.map(({ id, name }) => ({ value: id, label: name }))}
        />
      )}
    </FormDialog>
  );
}
