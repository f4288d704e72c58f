import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Chart } from '../ui/chart.tsx';
import { Card } from '../ui/detail-page.tsx';
import { useListState } from '../ui/list-state.ts';
import { formatBytes, formatNumber } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, ErrorState, Skeleton } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { parseDate } from '../ui/time.tsx';
import { countersQuery, trafficQuery } from './data.ts';
import type { Listener, Period } from './data.ts';
import { ratesOf, useSamples } from './samples.ts';

const PERIODS: Readonly<Record<Period, string>> = { hour: 'Last hour', day: 'Last 24 hours', week: 'Last 7 days' };

/** Bytes of the last week from the server, and the counters of the proxy while the page is open. */
export function Traffic({ id }: { id: string }) {
  const query = useQuery(countersQuery(useScope(), id));
  return (
    <>
      <Bytes id={id} />
      {query.data ? (
        <>
          <Live id={id} data={query.data} />
          <Totals listeners={query.data.listeners} />
        </>
      ) : query.error ? (
        <ErrorState error={query.error} retry={() => void query.refetch()} />
      ) : (
        <Skeleton />
      )}
    </>
  );
}

const perSecond = (value: number) => `${formatBytes(value)}/s`;

function Bytes({ id }: { id: string }) {
  const state = useListState();
  const period = (Object.keys(PERIODS) as Period[]).find((each) => each === state.get('period')) ?? 'hour';
  const query = useQuery({ ...trafficQuery(useScope(), id, period), placeholderData: keepPreviousData });
  const choice = (
    <select
      className="period"
      aria-label="Period"
      value={period}
      onChange={({ target }) => state.set({ period: target.value === 'hour' ? '' : target.value })}
    >
      {Object.entries(PERIODS).map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
  const points = query.data?.results ?? [];
  return (
    <Card title="Bytes" actions={choice}>
      <div className="card-body">
        {query.error && !query.data ? (
          <ErrorState error={query.error} retry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Skeleton />
        ) : points.length === 0 ? (
          <EmptyState title="No traffic yet">Points appear a minute after the creation.</EmptyState>
        ) : (
          <Chart
            label="Bytes per second"
            times={points.map(({ time }) => parseDate(time!).getTime() / 1000)}
            series={[
              { label: 'From clients', color: '--accent', values: points.map((each) => each.network_Bps_ingress) },
              { label: 'To clients', color: '--ok', values: points.map((each) => each.network_Bps_egress) },
            ]}
            format={perSecond}
          />
        )}
      </div>
    </Card>
  );
}

interface LiveProps {
  readonly id: string;
  readonly data: { readonly at: number; readonly stats: Parameters<typeof useSamples>[2] };
}

/** Connections and errors have no history on the server, so their charts start when the page is opened. */
function Live({ id, data }: LiveProps) {
  const samples = useSamples(id, data.at, data.stats);
  const times = samples.map(({ at }) => at / 1000);
  const rate = (name: 'total_connections' | 'request_errors') => ratesOf(samples, name);
  return (
    <Card title="Connections and errors since this page was opened">
      <div className="card-body charts">
        <Chart
          label="Open connections"
          times={times}
          series={[
            { label: 'Open connections', color: '--accent', values: samples.map((each) => each.active_connections) },
          ]}
          format={formatNumber}
        />
        <Chart
          label="New connections per second"
          times={times}
          series={[{ label: 'New connections per second', color: '--accent', values: rate('total_connections') }]}
          format={formatNumber}
        />
        <Chart
          label="Invalid or rejected requests per second"
          times={times}
          series={[
            { label: 'Invalid or rejected requests per second', color: '--bad', values: rate('request_errors') },
          ]}
          format={formatNumber}
        />
      </div>
    </Card>
  );
}

function Totals({ listeners }: { listeners: readonly Listener[] }) {
  return (
    <Card title="Counters of listeners">
      {listeners.length === 0 ? (
        <EmptyState title="No listeners yet" />
      ) : (
        <Table
          label="Counters of listeners"
          rows={listeners}
          rowKey={(listener) => listener.id}
          columns={[
            { key: 'name', title: 'Listener', render: (listener) => <bdi>{listener.name}</bdi> },
            {
              key: 'open',
              title: 'Open connections',
              kind: 'number',
              render: (each) => counter(each, 'active_connections'),
            },
            {
              key: 'all',
              title: 'All connections',
              kind: 'number',
              render: (each) => counter(each, 'total_connections'),
            },
            {
              key: 'in',
              title: 'From clients',
              kind: 'number',
              render: (each) => formatBytes(each.stats?.bytes_in ?? 0),
            },
            {
              key: 'out',
              title: 'To clients',
              kind: 'number',
              render: (each) => formatBytes(each.stats?.bytes_out ?? 0),
            },
            { key: 'errors', title: 'Errors', kind: 'number', render: (each) => counter(each, 'request_errors') },
          ]}
        />
      )}
    </Card>
  );
}

function counter({ stats }: Listener, name: 'active_connections' | 'total_connections' | 'request_errors'): string {
  return formatNumber(stats?.[name] ?? 0);
}
