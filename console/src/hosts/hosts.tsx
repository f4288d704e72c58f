import { useQuery } from '@tanstack/react-query';
import { ListPage } from '../ui/list-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { regionsQuery, type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, timeOf } from '../ui/time.tsx';
import { type Host, hostsQuery } from './data.ts';

const stateOf = ({ lease_valid, converged, state }: Host) => {
  if (!lease_valid) return 'away';
  if (state !== 'active') return state;
  return converged ? 'serving' : 'converging';
};

const badges: Record<string, string> = { serving: 'badge ok', away: 'badge bad' };

const columnsOf = (scope: Scope, regionName: (id: number) => string): Column<Host>[] => [
  {
    key: 'name',
    title: 'Name',
    sortBy: (host) => host.name,
    render: (host) => (
      <>
        <bdi>{host.name}</bdi> <span className="mono muted">{host.address}</span>
      </>
    ),
  },
  {
    key: 'region',
    title: 'Region',
    sortBy: (host) => host.region_id,
    render: (host) => <bdi>{regionName(host.region_id)}</bdi>,
  },
  {
    key: 'state',
    title: 'State',
    sortBy: stateOf,
    render: (host) => <span className={badges[stateOf(host)] ?? 'badge'}>{stateOf(host)}</span>,
  },
  {
    key: 'lease',
    title: 'Lease',
    sortBy: (host) => timeOf(host.lease_until),
    render: (host) => (host.lease_valid ? 'valid' : <Ago at={host.lease_until} />),
  },
  { key: 'pending_changes', title: 'Pending changes', kind: 'number', sortBy: (host) => host.pending_changes },
  {
    key: 'drivers',
    title: 'Drivers',
    kind: 'wrap',
    render: (host) => <Drivers host={host} />,
  },
  { key: 'held_groups', title: 'Held groups', kind: 'wrap', render: (host) => host.held_groups.join(', ') || '–' },
  { key: 'actions', title: 'Actions', kind: 'actions', render: (host) => <Actions host={host} scope={scope} /> },
];

function Drivers({ host }: { readonly host: Host }) {
  return (
    <span className="row">
      {host.drivers.map(({ kind, driver, healthy, detail }) => (
        <span key={kind} className={healthy ? 'badge' : 'badge bad'} title={detail}>
          {kind}: {driver}
        </span>
      ))}
    </span>
  );
}

function Actions({ host, scope }: { readonly host: Host; readonly scope: Scope }) {
  const to = (action: string) => scope.path('hosts', host.region_id, host.name, action);
  return (
    <span className="row">
      {host.state === 'active' ? (
        <ActionLink to={to('drain')}>Drain</ActionLink>
      ) : (
        <ActionLink to={to('undrain')}>Undrain</ActionLink>
      )}
      {!host.lease_valid && <ActionLink to={to('forget')}>Forget</ActionLink>}
    </span>
  );
}

export function HostList() {
  const scope = useScope();
  const regions = useQuery(regionsQuery).data?.results ?? [];
  const regionName = (id: number) => regions.find((region) => region.id === id)?.display_name ?? String(id);
  return (
    <ListPage
      title="Hosts"
      description="The hosts of regions that have several. Changes wait for every host whose lease is valid."
      query={useQuery(hostsQuery)}
      columns={columnsOf(scope, regionName)}
      rowKey={(host) => `${host.region_id} ${host.name}`}
      textOf={(host) => `${host.name} ${host.address} ${regionName(host.region_id)} ${host.held_groups.join(' ')}`}
      filters={[{ name: 'state', label: 'State', valueOf: stateOf }]}
      empty={{
        title: 'No hosts',
        text: 'A host joins a region that has several when its agent starts: cloudyard host --region N.',
      }}
    />
  );
}
