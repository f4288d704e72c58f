import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, POLICY, policyParams } from './data.ts';

export function DeletePolicy() {
  const scope = useScope();
  return (
    <CurrentPolicy>
      {(policy) => (
        <DeleteDialog
          kind="lifecycle policy"
          name={policy.name}
          queryKind={KIND}
          listPath={scope.path('lifecycle-policies')}
          call={{ operationId: 'deleteLifecyclePolicy', path: POLICY, params: policyParams(scope, policy.id) }}
        >
          No more snapshots are created. The existing ones are kept, and no longer expire.
        </DeleteDialog>
      )}
    </CurrentPolicy>
  );
}
