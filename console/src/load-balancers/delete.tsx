import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { CurrentBalancer } from './current.tsx';
import { BALANCER, KIND } from './data.ts';

export function DeleteLoadBalancer() {
  const scope = useScope();
  return (
    <CurrentBalancer>
      {({ balancer }) => (
        <DeleteDialog
          kind="load balancer"
          name={balancer.name}
          queryKind={KIND}
          listPath={scope.path('load-balancers')}
          call={{
            operationId: 'deleteLoadBalancer',
            path: BALANCER,
            params: { ...scopeParams(scope), load_balancer_id: balancer.id },
          }}
        >
          Its listeners, pools and L7 policies are deleted, its address is released, and connections end. This cannot be
          undone.
        </DeleteDialog>
      )}
    </CurrentBalancer>
  );
}
