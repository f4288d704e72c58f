import schema from 'schema:CreateListener';
import { Field } from '../../ui/form/field.tsx';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { useForm } from '../../ui/form/use-form.ts';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentBalancer } from '../current.tsx';
import type { Current } from '../current.tsx';
import { fittingListener } from '../fitting.ts';
import { useChange } from '../use-change.ts';
import { compact } from '../values.ts';
import { ListenerFields } from './fields.tsx';
import { hasPool } from './protocols.ts';

export function CreateListener() {
  return <CurrentBalancer>{(current) => <CreateDialog {...current} />}</CurrentBalancer>;
}

function CreateDialog({ balancer, tree }: Current) {
  const send = useChange(balancer.id);
  const call = {
    operationId: 'createListener',
    method: 'POST',
    path: '/cloud/v1/lblisteners/{project_id}/{region_id}',
    params: scopeParams(useScope()),
  };
  const form = useForm({
    schema,
    initial: { name: '', protocol: 'HTTP', protocol_port: 80 },
    toBody: (values) => compact({ ...fittingListener(values), load_balancer_id: balancer.id }),
    send: (body) => {
      const name = String(body['name']);
      return send(call, body, {
        busy: `Creating listener ${name}`,
        done: `Created listener ${name}`,
        tab: 'listeners',
      });
    },
  });
  const free = tree.pools.filter((pool) => pool.listeners.length === 0);
  return (
    <FormDialog title="Create listener" form={form} submitLabel="Create listener" segments={2} call={call}>
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
