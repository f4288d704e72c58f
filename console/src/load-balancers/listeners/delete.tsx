import { DeleteDialog } from '../../ui/form/delete-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart } from '../current.tsx';
import { KIND } from '../data.ts';

export function DeleteListener() {
  const scope = useScope();
  return (
    <CurrentPart kind="listeners">
      {(listener, { balancer }) => (
        <DeleteDialog
          kind="listener"
          name={listener.name}
          queryKind={KIND}
          listPath={scope.path('load-balancers', balancer.id)}
          listSearch={{ tab: 'listeners' }}
          call={{
            operationId: 'deleteListener',
            path: '/cloud/v1/lblisteners/{project_id}/{region_id}/{listener_id}',
            params: { ...scopeParams(scope), listener_id: listener.id },
          }}
        >
          Port {listener.protocol_port} closes and its connections end. The L7 policies of the listener are deleted as
          well; its pools are kept.
        </DeleteDialog>
      )}
    </CurrentPart>
  );
}
