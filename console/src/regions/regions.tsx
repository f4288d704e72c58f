import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import { driversQuery } from '../api/drivers.ts';
import type { components } from '../api/openapi.d.ts';
import { ListPage } from '../ui/list-page.tsx';
import { HOME, useScope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, timeOf } from '../ui/time.tsx';

type Region = components['schemas']['Region'];

/** With the types of volumes, which other reads of regions omit. */
const regionsWithTypesQuery = queryOptions({
  queryKey: ['regions', 'types'],
  queryFn: () =>
    allRows((page) =>
      unwrap(api.GET('/cloud/v1/regions', { params: { query: { ...page, show_volume_types: true } } })),
    ),
});

const columnsOf = (project: number, workersOf: (region: Region) => number): Column<Region>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (region) => region.display_name,
    render: (region) => <Link to={`/p/${project}/r/${region.id}/${HOME}`}>{region.display_name}</Link>,
  },
  { key: 'id', title: 'ID', kind: 'number', sortBy: (region) => region.id },
  {
    key: 'state',
    title: 'State',
    sortBy: (region) => region.state,
    render: (region) => <StatusBadge status={region.state} />,
  },
  { key: 'country', title: 'Country', sortBy: (region) => region.country },
  { key: 'shares', title: 'File shares', render: (region) => region.file_share_types?.join(', ') ?? '–' },
  {
    key: 'volumes',
    title: 'Volumes',
    kind: 'wrap',
    render: (region) => region.available_volume_types?.join(', ') ?? '–',
  },
  {
    key: 'workers',
    title: 'Live workers',
    kind: 'number',
    sortBy: workersOf,
    render: (region) => {
      const count = workersOf(region);
      return count === 0 ? <span className="badge bad">none</span> : count;
    },
  },
  {
    key: 'created',
    title: 'Declared',
    sortBy: (region) => timeOf(region.created_at),
    render: (region) => <Ago at={region.created_at} />,
  },
];

export function RegionList() {
  const { project } = useScope();
  const drivers = useQuery(driversQuery).data?.drivers ?? [];
  const workersOf = ({ id }: Region) =>
    new Set(drivers.filter(({ region_ids }) => region_ids.includes(id)).map(({ worker }) => worker)).size;
  return (
    <ListPage
      title="Regions"
      description="Declared in the settings of the servers. Each region needs a live worker."
      query={useQuery(regionsWithTypesQuery)}
      columns={columnsOf(project, workersOf)}
      rowKey={(region) => region.id}
      textOf={(region) => `${region.display_name} ${region.id} ${region.country}`}
      empty={{ title: 'No regions', text: 'Declare a region in the settings of the servers.' }}
    />
  );
}
