import { useQuery } from '@tanstack/react-query';
import { driversQuery } from '../api/drivers.ts';
import type { components } from '../api/openapi.d.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Card } from '../ui/detail-page.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { regionsQuery } from '../ui/scope.tsx';
import { type Column, Table } from '../ui/table.tsx';

type Driver = components['schemas']['DriverStatus'];
type TimeZones = components['schemas']['TimeZoneStatus'];

const stateOf = (driver: Driver) => (driver.healthy ? 'ok' : 'failing');

type RegionNames = (ids: readonly number[]) => string;

const columnsOf = (regions: RegionNames): Column<Driver>[] => [
  { key: 'kind', title: 'Driver', sortBy: (driver) => driver.kind ?? driver.driver },
  {
    key: 'state',
    title: 'State',
    sortBy: stateOf,
    render: (driver) => (
      <span className="row">
        <span className={driver.healthy ? 'badge ok' : 'badge bad'}>{stateOf(driver)}</span>
        {driver.real ? (
          <span className="badge">{driver.driver}</span>
        ) : (
          <span className="badge simulated">simulated</span>
        )}
      </span>
    ),
  },
  { key: 'detail', title: 'Detail', kind: 'wrap', render: (driver) => driver.detail },
  {
    key: 'remedy',
    title: 'Remedy',
    kind: 'wrap',
    // Wraps, unlike a block of code, so that the button stays in view.
    render: (driver) =>
      driver.remedy && (
        <div className="row">
          <code>{driver.remedy}</code>
          <CopyButton text={driver.remedy} what={`the remedy of ${nameOf(driver)}`} />
        </div>
      ),
  },
  { key: 'regions', title: 'Regions', sortBy: (driver) => regions(driver.region_ids) },
  {
    key: 'worker',
    title: 'Worker',
    sortBy: (driver) => driver.worker,
    render: (driver) => <span className="mono">{driver.worker}</span>,
  },
];

const nameOf = ({ kind, driver }: Driver) => kind ?? driver;

export function Workers() {
  const query = useQuery({
    ...driversQuery,
    select: ({ drivers, ...hosts }) => ({ count: drivers.length, results: drivers, ...hosts }),
  });
  const known = useQuery(regionsQuery).data?.results ?? [];
  const regions: RegionNames = (ids) =>
    ids.length === 0
      ? 'deliveries only'
      : ids.map((id) => known.find((region) => region.id === id)?.display_name ?? id).join(', ');
  return (
    <div className="stack">
      <ListPage
        title="Workers and drivers"
        description="The drivers of every live worker. Simulated drivers create nothing on a host."
        query={query}
        columns={columnsOf(regions)}
        rowKey={(driver) => `${driver.worker} ${nameOf(driver)}`}
        textOf={(driver) => [nameOf(driver), driver.driver, driver.detail, driver.worker].join(' ')}
        filters={[
          { name: 'state', label: 'State', valueOf: stateOf },
          { name: 'real', label: 'Type', valueOf: (driver) => (driver.real ? 'real' : 'simulated') },
        ]}
        empty={{
          title: 'No worker is running',
          text: 'Without a worker, tasks wait. Start one with cloudyard worker --region N.',
        }}
      />
      <HostCard
        title="Data directories"
        what="Free space"
        rows={query.data?.data_directories ?? []}
        regions={regions}
      />
      <HostCard title="Time zones of schedules" what="Database" rows={query.data?.time_zones ?? []} regions={regions} />
    </div>
  );
}

interface HostCardProps {
  title: string;
  /** The title of the column of details. */
  what: string;
  rows: readonly (TimeZones & { healthy?: boolean })[];
  regions: RegionNames;
}

function HostCard({ title, what, rows, regions }: HostCardProps) {
  if (rows.length === 0) return null;
  const renderDetail = ({ detail, healthy = true }: HostCardProps['rows'][number]) => (
    <span className="row">
      {!healthy && <span className="badge bad">failing</span>}
      {detail}
    </span>
  );
  return (
    <Card title={title}>
      <Table
        label={title}
        rows={rows}
        rowKey={(row) => row.worker}
        columns={[
          { key: 'detail', title: what, kind: 'wrap', render: renderDetail },
          { key: 'regions', title: 'Regions', render: (row) => regions(row.region_ids) },
          { key: 'worker', title: 'Worker', render: (row) => <span className="mono">{row.worker}</span> },
        ]}
      />
    </Card>
  );
}
