import schema from 'schema:UpdateListener';
import { useState } from 'react';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart } from '../current.tsx';
import type { LoadBalancer, Listener } from '../data.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { changedFields, editable } from '../values.ts';
import { ListenerFields } from './fields.tsx';

export function EditListener() {
  return (
    <CurrentPart kind="listeners">
      {(listener, { balancer }) => <EditDialog listener={listener} balancer={balancer} />}
    </CurrentPart>
  );
}

function EditDialog({ listener, balancer }: { listener: Listener; balancer: LoadBalancer }) {
  const [initial] = useState(() => editable(schema, listener));
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'updateListener',
      method: 'PATCH',
      path: '/cloud/v2/lblisteners/{project_id}/{region_id}/{listener_id}',
      params: { ...scopeParams(useScope()), listener_id: listener.id },
    },
    schema,
    initial,
    isEdit: true,
    toBody: (values) => changedFields(schema, initial, values),
    sent: () => ({
      busy: `Updating listener ${listener.name}`,
      done: `Updated listener ${listener.name}`,
      tab: 'listeners',
    }),
  });
  return (
    <FormDialog title={`Edit listener ${listener.name}`} form={form} submitLabel="Save">
      <ListenerFields form={form} protocol={listener.protocol} />
    </FormDialog>
  );
}
