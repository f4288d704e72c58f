import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { volumesQuery } from '../volumes/data.ts';
import { type Snapshot, snapshotsQuery } from './data.ts';
import { columnsOf, originOf, textOf } from './table.tsx';

export function SnapshotList() {
  const scope = useScope();
  const volumes = useQuery(volumesQuery(scope)).data?.results ?? [];
  const names = new Map(volumes.map(({ id, name }) => [id, name]));
  const nameOf = ({ volume_id: id }: Snapshot) => names.get(id) ?? id;
  const volumeColumn: Column<Snapshot> = {
    key: 'volume',
    title: 'Volume',
    kind: 'clip',
    sortBy: nameOf,
    render: (snapshot) => <Link to={scope.path('volumes', snapshot.volume_id)}>{nameOf(snapshot)}</Link>,
  };
  const [name, ...others] = columnsOf(scope);
  return (
    <ListPage
      title="Snapshots"
      description="The data of volumes as it was at one moment."
      driverKind="volumes"
      query={useQuery(snapshotsQuery(scope))}
      columns={[name!, volumeColumn, ...others]}
      rowKey={(snapshot) => snapshot.id}
      textOf={(snapshot) => `${textOf(snapshot)} ${nameOf(snapshot)}`}
      filters={[
        { name: 'volume', label: 'Volume', valueOf: nameOf },
        { name: 'status', label: 'Status', valueOf: (snapshot) => snapshot.status },
        { name: 'origin', label: 'Created by', valueOf: originOf },
      ]}
      create={{ label: 'Create snapshot', to: scope.path('snapshots', 'new') }}
      empty={{
        title: 'No snapshots yet',
        text: 'Create one here, or let a lifecycle policy create them by a schedule.',
      }}
    />
  );
}
