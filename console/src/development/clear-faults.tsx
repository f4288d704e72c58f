import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { FAULTS_PATH, faultsQuery } from './data.ts';

export function ClearFaults() {
  const scope = useScope();
  return (
    <ActionDialog
      title="Clear all faults"
      submitLabel="Clear all faults"
      isDangerous
      calls={[{ operationId: 'clearFaults', method: 'DELETE', path: FAULTS_PATH, params: {} }]}
      texts={{ done: 'All faults are cleared' }}
      queryKind={faultsQuery.queryKey[0]!}
      to={scope.path('development')}
    >
      <p className="notice warn">Later operations succeed again, and stalled operations continue.</p>
    </ActionDialog>
  );
}
