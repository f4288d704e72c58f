import { DeleteDialog } from '../../ui/form/delete-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart } from '../current.tsx';
import { KIND } from '../data.ts';
import { policyCall, policyTitle } from './policy.ts';

export function DeleteL7Policy() {
  const scope = useScope();
  return (
    <CurrentPart kind="policies">
      {(policy, { balancer }) => (
        <DeleteDialog
          kind="L7 policy"
          name={policy.name || policyTitle(policy)}
          queryKind={KIND}
          listPath={scope.path('load-balancers', balancer.id)}
          listSearch={{ tab: 'listeners' }}
          call={{ ...policyCall(scopeParams(scope), policy.id), operationId: 'deleteL7Policy' }}
        >
          Its rules are deleted as well. Requests that it matched go to the next policy or to the default pool.
        </DeleteDialog>
      )}
    </CurrentPart>
  );
}
