import { DeleteDialog } from '../../ui/form/delete-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart } from '../current.tsx';
import { KIND } from '../data.ts';

export function DeletePool() {
  const scope = useScope();
  return (
    <CurrentPart kind="pools">
      {(pool, { balancer }) => (
        <DeleteDialog
          kind="pool"
          name={pool.name}
          queryKind={KIND}
          listPath={scope.path('load-balancers', balancer.id)}
          listSearch={{ tab: 'pools' }}
          call={{
            operationId: 'deleteLbPool',
            path: '/cloud/v1/lbpools/{project_id}/{region_id}/{pool_id}',
            params: { ...scopeParams(scope), pool_id: pool.id },
          }}
        >
          Its members get no more traffic. A pool that an L7 policy uses cannot be deleted.
        </DeleteDialog>
      )}
    </CurrentPart>
  );
}
