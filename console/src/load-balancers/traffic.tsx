import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Chart } from '../ui/chart.tsx';
import { Card } from '../ui/detail-page.tsx';
import { useListState } from '../ui/list-state.ts';
import { formatBytes, formatNumber } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, ErrorState, Skeleton } from '../ui/states.tsx';
import { useSimulatedDriver } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { parseDate } from '../ui/time.tsx';
import { countersQuery, trafficQuery } from './data.ts';
import type { Listener, TrafficHistory } from './data.ts';

const PERIODS: Readonly<Record<string, string>> = { 1: 'Last hour', 24: 'Last 24 hours', 168: 'Last 7 days' };

/** The traffic of the last week, and the counters of the proxy. */
export function Traffic({ id }: { id: string }) {
  const query = useQuery(countersQuery(useScope(), id));
  return (
    <>
      <History id={id} listeners={query.data ?? []} />
      {query.data ? (
        <Totals listeners={query.data} />
      ) : query.error ? (
        <ErrorState error={query.error} retry={() => void query.refetch()} />
      ) : (
        <Skeleton />
      )}
    </>
  );
}

function History({ id, listeners }: { id: string; listeners: readonly Listener[] }) {
  const state = useListState();
  const hours = state.get('hours') in PERIODS ? state.get('hours') : '1';
  const listener = listeners.find((each) => each.id === state.get('listener'))?.id;
  const query = useQuery({
    ...trafficQuery(useScope(), id, Number(hours), listener),
    placeholderData: keepPreviousData,
  });
  const choices = (
    <div className="row">
      <select
        className="period"
        aria-label="Listener"
        value={listener ?? ''}
        onChange={({ target }) => state.set({ listener: target.value })}
      >
        <option value="">All listeners</option>
        {listeners.map(({ id: value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
      <select
        className="period"
        aria-label="Period"
        value={hours}
        onChange={({ target }) => state.set({ hours: target.value === '1' ? '' : target.value })}
      >
        {Object.entries(PERIODS).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
  const simulated = useSimulatedDriver('load balancers');
  return (
    <Card title="Traffic" actions={choices}>
      <div className="card-body">
        {simulated && <p className="muted">The driver is simulated: no client can connect, so all values are 0.</p>}
        {query.error && !query.data ? (
          <ErrorState error={query.error} retry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Skeleton />
        ) : query.data.count === 0 ? (
          <EmptyState title="No traffic yet">Points appear a minute after the creation.</EmptyState>
        ) : (
          <Charts history={query.data} />
        )}
      </div>
    </Card>
  );
}

type Name = Exclude<keyof TrafficHistory['results'][number], 'time'>;

function Charts({ history: { results, step_seconds: seconds } }: { history: TrafficHistory }) {
  const times = results.map(({ time }) => parseDate(time).getTime() / 1000);
  const values = (name: Name) => results.map((each) => each[name]);
  const rates = (name: Name) => results.map((each) => each[name] / seconds);
  return (
    <div className="charts">
      <Chart
        label="Requests per second"
        times={times}
        series={[{ label: 'HTTP requests', color: '--accent', values: rates('requests') }]}
        format={formatRate}
      />
      <Chart
        label="Bytes per second"
        times={times}
        series={[
          { label: 'From clients', color: '--accent', values: rates('bytes_in') },
          { label: 'To clients', color: '--ok', values: rates('bytes_out') },
        ]}
        format={(value) => `${formatBytes(value)}/s`}
        base={1024}
      />
      <Chart
        label="New connections per second"
        times={times}
        series={[{ label: 'New connections', color: '--accent', values: rates('connections') }]}
        format={formatRate}
      />
      <Chart
        label="Open connections"
        times={times}
        series={[{ label: 'Highest number', color: '--accent', values: values('open_connections') }]}
        format={formatNumber}
      />
      <Chart
        label="Errors per second"
        times={times}
        series={[
          { label: 'Invalid or rejected requests', color: '--warn', values: rates('request_errors') },
          { label: 'Responses 5xx and failed connections', color: '--bad', values: rates('server_errors') },
        ]}
        format={formatRate}
      />
    </div>
  );
}

const rate = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const formatRate = (value: number) => rate.format(value);

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
            {
              key: 'errors',
              title: 'Invalid or rejected requests',
              kind: 'number',
              render: (each) => counter(each, 'request_errors'),
            },
          ]}
        />
      )}
    </Card>
  );
}

function counter({ stats }: Listener, name: 'active_connections' | 'total_connections' | 'request_errors'): string {
  return formatNumber(stats?.[name] ?? 0);
}
