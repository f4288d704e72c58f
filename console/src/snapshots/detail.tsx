import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useLockReason } from '../api/session.ts';
import { RunningTask } from '../tasks/progress.tsx';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { FailureReason } from '../ui/failure-reason.tsx';
import { formatGib } from '../ui/numbers.ts';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLinks } from '../ui/page-head.tsx';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { volumeQuery } from '../volumes/data.ts';
import { type Snapshot, snapshotQuery } from './data.ts';
import { originOf } from './table.tsx';

export function SnapshotDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  usePageActions([
    { title: 'Edit this snapshot', to: scope.path('snapshots', id, 'edit') },
    { title: 'Delete this snapshot', to: scope.path('snapshots', id, 'delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Snapshots', to: scope.path('snapshots') }]}
      query={useQuery(snapshotQuery(scope, id))}
      driverKind="volumes"
      titleOf={(snapshot) => snapshot.name}
      statusOf={(snapshot) => snapshot.status}
      notice={(snapshot) => <FailureReason id={snapshot.id} status={snapshot.status} />}
      actions={(snapshot) => <Actions snapshot={snapshot} />}
      tabs={(snapshot) => [
        { key: 'overview', title: 'Overview', render: () => <Overview snapshot={snapshot} /> },
        ...resourceTabs({ tags: snapshot.tags, table: 'snapshots', id: snapshot.id }),
      ]}
    />
  );
}

function Actions({ snapshot }: { snapshot: Snapshot }) {
  const scope = useScope();
  const reason = useLockReason(snapshot, 'snapshot');
  const to = (action: string) => scope.path('snapshots', snapshot.id, action);
  return (
    <>
      {reason || snapshot.status !== 'available' ? null : (
        <Link to={scope.path('volumes', 'new')} search={{ snapshot: snapshot.id } as never} className="button">
          Create volume
        </Link>
      )}
      <ActionLinks actions={{ edit: 'Edit', delete: 'Delete' }} to={to} disabledReason={reason} />
    </>
  );
}

function Overview({ snapshot }: { snapshot: Snapshot }) {
  const scope = useScope();
  const volume = useQuery({ ...volumeQuery(scope, snapshot.volume_id), retry: false }).data;
  return (
    <>
      <RunningTask id={snapshot.task_id} />
      <Card title="Properties">
        <Properties
          items={{
            Size: formatGib(snapshot.size),
            Volume: (
              <Link to={scope.path('volumes', snapshot.volume_id)}>
                <bdi>{volume?.name ?? snapshot.volume_id}</bdi>
              </Link>
            ),
            'Created by': originOf(snapshot),
            Description: snapshot.description && <bdi>{snapshot.description}</bdi>,
            Created: <Ago at={snapshot.created_at} />,
            Changed: <Ago at={snapshot.updated_at} />,
            ID: <CopyableText text={snapshot.id} what="ID" />,
          }}
        />
      </Card>
    </>
  );
}
