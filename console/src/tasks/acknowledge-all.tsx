import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';

/** Acknowledges every task of the project and region. */
export function AcknowledgeAllTasks() {
  const scope = useScope();
  return (
    <ActionDialog
      title="Acknowledge all tasks"
      submitLabel="Acknowledge all"
      calls={[
        {
          operationId: 'acknowledgeAllTasks',
          method: 'POST',
          path: '/cloud/v1/tasks/acknowledge_all',
          params: {},
          query: { project_id: scope.project, region_id: scope.region },
        },
      ]}
      texts={{ done: 'All tasks are acknowledged' }}
      queryKind="tasks"
      to={scope.path('tasks')}
    >
      <p>The tasks of this project and region that have ended are marked as seen. This has no other effect.</p>
    </ActionDialog>
  );
}
