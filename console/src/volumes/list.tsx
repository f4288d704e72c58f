import { useQuery } from '@tanstack/react-query';
import { createdColumn, nameColumn, statusColumn, tagsText } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { formatGib } from '../ui/numbers.ts';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { type Volume, volumesQuery } from './data.ts';

const columnsOf = (scope: Scope): Column<Volume>[] => [
  nameColumn((volume) => scope.path('volumes', volume.id)),
  statusColumn,
  {
    key: 'size',
    title: 'Size',
    kind: 'number',
    sortBy: (volume) => volume.size,
    render: (volume) => formatGib(volume.size),
  },
  { key: 'type', title: 'Type', sortBy: (volume) => volume.volume_type },
  { key: 'snapshots', title: 'Snapshots', kind: 'number', sortBy: (volume) => volume.snapshot_ids.length },
  createdColumn,
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
      textOf={(volume) => [volume.name, volume.id, tagsText(volume.tags)].join(' ')}
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
