import { useQuery } from '@tanstack/react-query';
import { useLockReason } from '../api/session.ts';
import { createdColumn, nameColumn, statusColumn, tagsText } from '../ui/columns.tsx';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { Rows } from '../ui/list-page.tsx';
import { formatGib } from '../ui/numbers.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import type { Volume } from '../volumes/data.ts';
import { type Snapshot, snapshotsQuery } from './data.ts';

export const columnsOf = (scope: Scope): Column<Snapshot>[] => [
  nameColumn((snapshot) => scope.path('snapshots', snapshot.id)),
  statusColumn,
  {
    key: 'size',
    title: 'Size',
    kind: 'number',
    sortBy: (snapshot) => snapshot.size,
    render: (snapshot) => formatGib(snapshot.size),
  },
  { key: 'origin', title: 'Created by', sortBy: originOf },
  createdColumn,
];

/** Snapshots of a lifecycle policy have a read-only tag. */
export function originOf({ tags }: Snapshot): string {
  return tags.some(({ key }) => key === 'created_by_policy') ? 'lifecycle policy' : 'request';
}

export const textOf = ({ name, id, description, tags }: Snapshot) => [name, id, description, tagsText(tags)].join(' ');

/** The snapshots of a volume, for its detail page. */
export function SnapshotTable({ volume }: { volume: Volume }) {
  const scope = useScope();
  const reason = useLockReason(volume, 'volume');
  const query = useQuery(snapshotsQuery(scope, volume.id));
  const create = (
    <ActionLink to={scope.path('volumes', volume.id, 'snapshots', 'new')} className="small" disabledReason={reason}>
      <Icon name="plus" /> Add snapshot
    </ActionLink>
  );
  return (
    <Card title="Snapshots" actions={create}>
      <Rows
        title="Snapshots"
        query={query}
        columns={columnsOf(scope)}
        rowKey={(snapshot) => snapshot.id}
        textOf={textOf}
        empty={{ title: 'No snapshots', text: 'A snapshot keeps the data of the volume as it is at one moment.' }}
      />
    </Card>
  );
}
