import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentBalancer } from './current.tsx';
import { BALANCER, balancerParams, KIND } from './data.ts';

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
            params: balancerParams(scope, balancer.id),
          }}
        >
          Its listeners, pools and L7 policies are deleted, its address is released, and connections end. This cannot be
          undone.
        </DeleteDialog>
      )}
    </CurrentBalancer>
  );
}
