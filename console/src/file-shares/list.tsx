import { useQuery } from '@tanstack/react-query';
import { createdColumn, nameColumn, statusColumn, tagsText } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { formatGib } from '../ui/numbers.ts';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { type FileShare, fileSharesQuery, type FileShareUsage, usageQuery } from './data.ts';
import { Usage } from './usage.tsx';

const columnsOf = (scope: Scope, usage?: ReadonlyMap<string, FileShareUsage>): Column<FileShare>[] => [
  nameColumn((share) => scope.path('file-shares', share.id)),
  statusColumn,
  {
    key: 'size',
    title: 'Size',
    kind: 'number',
    sortBy: (share) => share.size,
    render: (share) => formatGib(share.size),
  },
  {
    key: 'used',
    title: 'Used',
    sortBy: (share) => usage?.get(share.id)?.used_bytes,
    render: (share) => usage && <Usage share={share} usage={usage.get(share.id)} />,
  },
  { key: 'type', title: 'Type', sortBy: (share) => share.type_name },
  { key: 'network', title: 'Network', kind: 'clip', sortBy: (share) => share.network_name },
  createdColumn,
];

export function FileShareList() {
  const scope = useScope();
  const { data: usage } = useQuery(usageQuery(scope));
  return (
    <ListPage
      title="File shares"
      description="NFS shares that machines of your networks mount."
      driverKind="file shares"
      query={useQuery(fileSharesQuery(scope))}
      columns={columnsOf(scope, usage)}
      rowKey={(share) => share.id}
      textOf={(share) => [share.name, share.id, tagsText(share.tags)].join(' ')}
      filters={[
        { name: 'status', label: 'Status', valueOf: (share) => share.status },
        { name: 'type', label: 'Type', valueOf: (share) => share.type_name },
      ]}
      create={{ label: 'Create file share', to: scope.path('file-shares', 'new') }}
      empty={{
        title: 'No file shares yet',
        text: 'A file share is storage that several machines mount at once, over NFS.',
      }}
    />
  );
}
