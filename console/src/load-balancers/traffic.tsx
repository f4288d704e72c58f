import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Chart } from '../ui/chart.tsx';
import { Card } from '../ui/detail-page.tsx';
import { useListState } from '../ui/list-state.ts';
import { formatBytes, formatNumber } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { useSimulatedDriver } from '../ui/status.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { parseDate } from '../ui/time.tsx';
import { countersQuery, type Listener, type TrafficHistory, trafficQuery } from './data.ts';

const PERIODS: Readonly<Record<string, string>> = { 1: 'Last hour', 24: 'Last 24 hours', 168: 'Last 7 days' };

const rate = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const formatRate = (value: number) => rate.format(value);

/** The traffic of the last week, and the counters of the proxy. */
export function Traffic({ id }: { id: string }) {
  const query = useQuery(countersQuery(useScope(), id));
  return (
    <>
      <History id={id} listeners={query.data ?? []} />
      {query.data ? <Totals listeners={query.data} /> : <NotLoaded query={query} />}
    </>
  );
}

function History({ id, listeners }: { id: string; listeners: readonly Listener[] }) {
  const state = useListState();
  const hours = Object.hasOwn(PERIODS, state.get('hours')) ? state.get('hours') : '1';
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
      <div className="card-body" aria-busy={query.isPlaceholderData}>
        {simulated && <p className="muted">The driver is simulated: no client can connect, so all values are 0.</p>}
        {!query.data ? (
          <NotLoaded query={query} />
        ) : query.data.count === 0 ? (
          <EmptyState title="No traffic yet">The first point appears a minute after the creation.</EmptyState>
        ) : (
          <Charts history={query.data} />
        )}
      </div>
    </Card>
  );
}

type Counter = Exclude<keyof TrafficHistory['results'][number], 'time'>;

interface TrafficChart {
  readonly label: string;
  readonly format: (value: number) => string;
  readonly base?: 1000 | 1024;
  readonly series: readonly { readonly label: string; readonly color: string; readonly counter: Counter }[];
}

const CHARTS: readonly TrafficChart[] = [
  {
    label: 'Requests per second',
    format: formatRate,
    series: [{ label: 'HTTP requests', color: '--accent', counter: 'requests' }],
  },
  {
    label: 'Bytes per second',
    format: (value) => `${formatBytes(value)}/s`,
    base: 1024,
    series: [
      { label: 'From clients', color: '--accent', counter: 'bytes_in' },
      { label: 'To clients', color: '--ok', counter: 'bytes_out' },
    ],
  },
  {
    label: 'New connections per second',
    format: formatRate,
    series: [{ label: 'New connections', color: '--accent', counter: 'connections' }],
  },
  {
    label: 'Open connections',
    format: formatNumber,
    series: [{ label: 'Highest number', color: '--accent', counter: 'open_connections' }],
  },
  {
    label: 'Errors per second',
    format: formatRate,
    series: [
      { label: 'Invalid or rejected requests', color: '--warn', counter: 'request_errors' },
      { label: 'Responses 5xx and failed connections', color: '--bad', counter: 'server_errors' },
    ],
  },
];

function Charts({ history: { results, step_seconds: seconds } }: { history: TrafficHistory }) {
  const times = results.map(({ time }) => parseDate(time).getTime() / 1000);
  // Open connections are a level, the others are counts of a step.
  const valuesOf = (counter: Counter) =>
    results.map((each) => (counter === 'open_connections' ? each[counter] : each[counter] / seconds));
  return (
    <div className="charts">
      {CHARTS.map(({ series, ...chart }) => (
        <Chart
          key={chart.label}
          {...chart}
          times={times}
          series={series.map(({ counter, ...line }) => ({ ...line, values: valuesOf(counter) }))}
        />
      ))}
    </div>
  );
}

const COUNTERS = [
  ['active_connections', 'Open connections', formatNumber],
  ['total_connections', 'All connections', formatNumber],
  ['bytes_in', 'From clients', formatBytes],
  ['bytes_out', 'To clients', formatBytes],
  ['request_errors', 'Invalid or rejected requests', formatNumber],
] as const;

const TOTALS: Column<Listener>[] = [
  { key: 'name', title: 'Listener', render: (listener) => <bdi>{listener.name}</bdi> },
  ...COUNTERS.map(
    ([key, title, format]): Column<Listener> => ({
      key,
      title,
      kind: 'number',
      render: ({ stats }) => format(stats?.[key] ?? 0),
    }),
  ),
];

function Totals({ listeners }: { listeners: readonly Listener[] }) {
  return (
    <Card title="Counters of listeners">
      <Table
        label="Counters of listeners"
        rows={listeners}
        rowKey={(listener) => listener.id}
        columns={TOTALS}
        empty={<EmptyState title="No listeners yet" />}
      />
    </Card>
  );
}
