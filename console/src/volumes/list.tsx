import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { formatGib } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, parseDate } from '../ui/time.tsx';
import { volumesQuery } from './data.ts';
import type { Volume } from './data.ts';

const columnsOf = (scope: Scope): Column<Volume>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (volume) => volume.name,
    render: (volume) => (
      <Link to={scope.path('volumes', volume.id)}>
        <bdi>{volume.name}</bdi>
      </Link>
    ),
  },
  {
    key: 'status',
    title: 'Status',
    sortBy: (volume) => volume.status,
    render: (volume) => <StatusBadge status={volume.status} />,
  },
  {
    key: 'size',
    title: 'Size',
    kind: 'number',
    sortBy: (volume) => volume.size,
    render: (volume) => formatGib(volume.size),
  },
  { key: 'type', title: 'Type', sortBy: (volume) => volume.volume_type, render: (volume) => volume.volume_type },
  {
    key: 'snapshots',
    title: 'Snapshots',
    kind: 'number',
    sortBy: (volume) => volume.snapshot_ids.length,
    render: (volume) => volume.snapshot_ids.length,
  },
  {
    key: 'created',
    title: 'Created',
    sortBy: (volume) => parseDate(volume.created_at).getTime(),
    render: (volume) => <Ago at={volume.created_at} />,
  },
];

export function VolumeList() {
  const scope = useScope();
  return (
    <ListPage
      title="Volumes"
      description="Block devices that snapshots can copy and restore."
      driverKind="volumes"
      query={useQuery(volumesQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(volume) => volume.id}
      textOf={(volume) => [volume.name, volume.id, ...volume.tags.map(({ key, value }) => `${key}=${value}`)].join(' ')}
      filters={[
        { name: 'status', label: 'Status', valueOf: (volume) => volume.status },
        { name: 'type', label: 'Type', valueOf: (volume) => volume.volume_type },
      ]}
      create={{ label: 'Create volume', to: scope.path('volumes', 'new') }}
      empty={{
        title: 'No volumes yet',
        text: 'A volume is a block device of fixed size. Create an empty one, or one with the data of a snapshot.',
      }}
    />
  );
}
