import { useParams } from '@tanstack/react-router';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { FAULTS_PATH, faultsQuery } from './data.ts';

/** Removes one fault. */
export function ClearFault() {
  const scope = useScope();
  const { fault } = useParams({ strict: false }) as { fault: string };
  return (
    <ActionDialog
      title={`Clear fault ${fault}`}
      submitLabel="Clear fault"
      isDangerous
      calls={[
        {
          operationId: 'deleteFault',
          method: 'DELETE',
          path: `${FAULTS_PATH}/{fault_id}`,
          params: { fault_id: fault },
        },
      ]}
      texts={{ done: `Cleared fault ${fault}` }}
      queryKind={faultsQuery.queryKey[0]!}
      to={scope.path('development')}
    >
      <p className="notice warn">Later operations succeed again, and operations that it stalled continue.</p>
    </ActionDialog>
  );
}
