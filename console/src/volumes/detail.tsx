import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useLockReason } from '../api/session.ts';
import { SnapshotTable } from '../snapshots/table.tsx';
import { RunningTask } from '../tasks/progress.tsx';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { FailureReason } from '../ui/failure-reason.tsx';
import { formatGib } from '../ui/numbers.ts';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLink, ActionLinks } from '../ui/page-head.tsx';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { type Volume, volumeQuery } from './data.ts';

export function VolumeDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  usePageActions([
    { title: 'Create a snapshot of this volume', to: scope.path('volumes', id, 'snapshots', 'new') },
    { title: 'Edit this volume', to: scope.path('volumes', id, 'edit') },
    { title: 'Extend this volume', to: scope.path('volumes', id, 'extend') },
    { title: 'Change the type of this volume', to: scope.path('volumes', id, 'retype') },
    { title: 'Revert this volume', to: scope.path('volumes', id, 'revert') },
    { title: 'Delete this volume', to: scope.path('volumes', id, 'delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Volumes', to: scope.path('volumes') }]}
      query={useQuery(volumeQuery(scope, id))}
      driverKind="volumes"
      titleOf={(volume) => volume.name}
      statusOf={(volume) => volume.status}
      notice={(volume) => <FailureReason id={volume.id} status={volume.status} />}
      actions={(volume) => <Actions volume={volume} />}
      tabs={(volume) => [
        { key: 'overview', title: 'Overview', render: () => <Overview volume={volume} /> },
        {
          key: 'snapshots',
          title: `Snapshots (${volume.snapshot_ids.length})`,
          render: () => <SnapshotTable volume={volume} />,
        },
        ...resourceTabs({ tags: volume.tags, table: 'volumes', id: volume.id }),
      ]}
    />
  );
}

function Actions({ volume }: { volume: Volume }) {
  const scope = useScope();
  const reason = useLockReason(volume, 'volume');
  const to = (...action: readonly string[]) => scope.path('volumes', volume.id, ...action);
  return (
    <>
      <ActionLink to={to('snapshots', 'new')} disabledReason={reason}>
        Create snapshot
      </ActionLink>
      <ActionLinks
        actions={{ edit: 'Edit', extend: 'Extend', retype: 'Change type' }}
        to={to}
        disabledReason={reason}
      />
      <ActionLink
        to={to('revert')}
        className="danger"
        disabledReason={reason ?? (volume.snapshot_ids.length === 0 ? 'The volume has no snapshot' : null)}
      >
        Revert
      </ActionLink>
      <ActionLink to={to('delete')} className="danger" disabledReason={reason}>
        Delete
      </ActionLink>
    </>
  );
}

function Overview({ volume }: { volume: Volume }) {
  return (
    <>
      <RunningTask id={volume.task_id} />
      <Card title="Properties">
        <Properties
          items={{
            Size: formatGib(volume.size),
            Type: volume.volume_type,
            Snapshots: volume.snapshot_ids.length,
            Created: <Ago at={volume.created_at} />,
            Changed: <Ago at={volume.updated_at} />,
            ID: <CopyableText text={volume.id} what="ID" />,
          }}
        />
      </Card>
    </>
  );
}
