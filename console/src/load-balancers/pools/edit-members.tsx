import schema from 'schema:UpdateLbPool';
import { useState } from 'react';
import { FormDialog } from '../../ui/form/form-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart } from '../current.tsx';
import type { LbPool, LoadBalancer } from '../data.ts';
import { useBalancerForm } from '../use-balancer-form.ts';
import { compact, editable } from '../values.ts';
import { MemberTable } from './member-table.tsx';

/** The members of a pool, changed as one update: the pool is never without those that stay. */
export function EditMembers() {
  return (
    <CurrentPart kind="pools">{(pool, { balancer }) => <EditDialog pool={pool} balancer={balancer} />}</CurrentPart>
  );
}

const membersOf = ({ members }: LbPool) => editable(schema, { members });

function EditDialog({ pool, balancer }: { pool: LbPool; balancer: LoadBalancer }) {
  const [initial] = useState(() => membersOf(pool));
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
    toBody: compact,
    sent: () => ({
      busy: `Updating the members of ${pool.name}`,
      done: `Updated the members of ${pool.name}`,
      tab: 'pools',
    }),
  });
  const hasChangedElsewhere = !form.isSubmitting && JSON.stringify(membersOf(pool)) !== JSON.stringify(initial);
  return (
    <FormDialog title={`Members of ${pool.name}`} form={form} submitLabel="Save members">
      {hasChangedElsewhere && (
        <div className="notice warn" role="alert">
          The members were changed elsewhere after this dialog opened. Saving replaces that change.
        </div>
      )}
      <MemberTable form={form} path="members" isMonitored={pool.healthmonitor !== null} />
    </FormDialog>
  );
}
