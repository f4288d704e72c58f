import schema from 'schema:UpdateLbPool';
import { useState } from 'react';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { type Current, CurrentPart } from '../current.tsx';
import type { LbPool } from '../data.ts';
import { fittingPool } from '../fitting.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { changedFields, editable } from '../values.ts';
import { PoolFields } from './fields.tsx';

export function EditPool() {
  return <CurrentPart kind="pools">{(pool, current) => <EditDialog pool={pool} current={current} />}</CurrentPart>;
}

function EditDialog({ pool, current: { balancer, tree } }: { pool: LbPool; current: Current }) {
  // Members have a form of their own.
  const [initial] = useState(() => editable(schema, { ...pool, members: null }));
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'updateLbPool',
      method: 'PATCH',
      path: '/cloud/v2/lbpools/{project_id}/{region_id}/{pool_id}',
      params: { ...scopeParams(useScope()), pool_id: pool.id },
    },
    schema,
    initial,
    isEdit: true,
    toBody: (values) => changedFields(schema, initial, fittingPool(values)),
    sent: () => ({ busy: `Updating pool ${pool.name}`, done: `Updated pool ${pool.name}`, tab: 'pools' }),
  });
  const listener = tree.listeners.find(({ id }) => id === pool.listeners[0]?.id);
  return (
    <FormDialog title={`Edit pool ${pool.name}`} form={form} submitLabel="Save">
      <PoolFields form={form} listenerProtocol={listener?.protocol} />
    </FormDialog>
  );
}
