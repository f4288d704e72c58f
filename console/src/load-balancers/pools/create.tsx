import schema from 'schema:CreateLbPool';
import { Field } from '../../ui/form/field.tsx';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { type Current, CurrentBalancer } from '../current.tsx';
import { fittingPool } from '../fitting.ts';
import { hasPool } from '../listeners/protocols.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { compact } from '../values.ts';
import { PoolFields } from './fields.tsx';
import { MemberTable } from './member-table.tsx';

export function CreatePool() {
  return <CurrentBalancer>{(current) => <CreateDialog {...current} />}</CurrentBalancer>;
}

function CreateDialog({ balancer, tree }: Current) {
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'createLbPool',
      method: 'POST',
      path: '/cloud/v1/lbpools/{project_id}/{region_id}',
      params: scopeParams(useScope()),
    },
    schema,
    initial: { name: '', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [] },
    // Also with a listener: the Terraform provider replaces a pool whose load balancer its configuration does not name.
    toBody: (values) => compact({ ...fittingPool(values), load_balancer_id: balancer.id }),
    sent: ({ name }) => ({ busy: `Creating pool ${String(name)}`, done: `Created pool ${String(name)}`, tab: 'pools' }),
  });
  const used = new Set(tree.pools.flatMap((pool) => pool.listeners.map(({ id }) => id)));
  const free = tree.listeners.filter(({ id, protocol }) => hasPool(protocol) && !used.has(id));
  const listener = tree.listeners.find(({ id }) => id === form.get('listener_id'));
  return (
    <FormDialog title="Create pool" form={form} submitLabel="Create pool">
      <Field
        form={form}
        path="listener_id"
        label="Listener"
        help="The listener whose default pool this becomes. Without one, L7 policies can send requests to the pool."
        choices={free.map(({ id, name, protocol, protocol_port }) => ({
          value: id,
          label: `${name} (${protocol} ${protocol_port})`,
        }))}
      />
      <PoolFields form={form} listenerProtocol={listener?.protocol} />
      <MemberTable form={form} path="members" isMonitored={form.get('healthmonitor') !== undefined} />
    </FormDialog>
  );
}
