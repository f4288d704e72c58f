import { useQuery } from '@tanstack/react-query';
import { api, succeeded } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { newestSnapshot, snapshotsQuery } from '../snapshots/data.ts';
import { FormDialog, useTypedConfirmation } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { FullDate } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CurrentVolume, KIND, VOLUME, type Volume, volumeParams, volumeQuery } from './data.ts';

const PATH = `${VOLUME}/revert` as const;

export function RevertVolume() {
  return <CurrentVolume>{(volume) => <RevertDialog volume={volume} />}</CurrentVolume>;
}

/** The API reverts a volume to its newest snapshot only. */
function RevertDialog({ volume }: { volume: Volume }) {
  const scope = useScope();
  const leave = useLeave();
  const { isConfirmed, field } = useTypedConfirmation(volume.name);
  const snapshots = useQuery(snapshotsQuery(scope, volume.id)).data?.results ?? [];
  const snapshot = newestSnapshot(volume, snapshots);
  const params = volumeParams(scope, volume.id);
  const form = useForm({
    call: { operationId: 'revertVolume', method: 'POST', path: PATH, params },
    schema: {},
    initial: {},
    send: async () => {
      await succeeded(api.POST(PATH, { params: { path: params } }));
      // The response names no task; the volume does while the revert runs, and its page says why a revert has failed.
      const { task_id, status } = await queryClient.fetchQuery({ ...volumeQuery(scope, volume.id), staleTime: 0 });
      const [busy, done] = [`Reverting volume ${volume.name}`, `Reverted volume ${volume.name}`];
      if (task_id) trackTasks([task_id], scope, { busy, done });
      else if (status === 'error_restoring') showToast({ tone: 'bad', text: `${busy} failed` });
      else showToast({ tone: 'ok', text: done });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('volumes', volume.id) });
    },
  });
  const reason = snapshot ? 'Type the name to confirm' : 'The volume has no available snapshot';
  return (
    <FormDialog
      title={`Revert ${volume.name}`}
      form={form}
      submitLabel="Revert volume"
      isDangerous
      disabledReason={snapshot && isConfirmed ? null : reason}
    >
      {snapshot && (
        <div className="notice warn">
          The volume gets the data of its newest snapshot, <bdi>{snapshot.name}</bdi>, of{' '}
          <FullDate at={snapshot.created_at} />. Data written after it is lost. This cannot be undone.
        </div>
      )}
      {field}
    </FormDialog>
  );
}
