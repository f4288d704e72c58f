import './lifecycle-policies.css';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { useListState } from '../ui/list-state.ts';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, ErrorState, Skeleton } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { formatDate, FullDate, parseDate } from '../ui/time.tsx';
import { forecastQuery, runsQuery } from './data.ts';
import type { Forecast, Policy, Run } from './data.ts';

const monthName = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric' });
const weekdayName = new Intl.DateTimeFormat(undefined, { weekday: 'short' });
/** Runs below the calendar. */
const LISTED_RUNS = 50;

/** Past runs with their failures and coming runs, by day in the browser's time zone. The month is in the URL. */
export function Calendar({ policy }: { policy: Policy }) {
  const scope = useScope();
  const state = useListState();
  const runs = useQuery(runsQuery(scope, policy.id));
  const forecast = useQuery(forecastQuery(scope, policy.id));
  const error = runs.error ?? forecast.error;
  if (error) return <ErrorState error={error} retry={() => void Promise.all([runs.refetch(), forecast.refetch()])} />;
  if (!runs.data || !forecast.data) return <Skeleton rows={8} />;
  const month = monthOf(state.get('month'), runs.data.results, forecast.data.runs);
  const step = (count: number) => state.set({ month: keyOf(month.getFullYear(), month.getMonth() + count) });
  const tools = (
    <div className="row">
      <button type="button" className="button small" aria-label="Previous month" onClick={() => step(-1)}>
        <Icon name="left" />
      </button>
      <button type="button" className="button small" aria-label="Next month" onClick={() => step(1)}>
        <Icon name="right" />
      </button>
    </div>
  );
  return (
    <>
      <Card title={monthName.format(month)} actions={tools}>
        <Month month={month} runs={runs.data.results} coming={forecast.data.runs} />
      </Card>
      <Card title="Past runs">
        <PastRuns policy={policy} runs={runs.data.results} />
      </Card>
    </>
  );
}

function keyOf(year: number, month: number): string {
  const date = new Date(year, month, 1);
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}`;
}

/** The first day of the chosen month; by default of the next run, else of the last one. The server's clock may be moved. */
function monthOf(chosen: string, runs: readonly Run[], coming: Forecast['runs']): Date {
  const known = /^(\d{4})-(\d{2})$/.exec(chosen);
  if (known) return new Date(Number(known[1]), Number(known[2]) - 1, 1);
  const at = coming[0]?.utc ?? runs[0]?.due_at;
  const day = at === undefined ? new Date() : parseDate(at);
  return new Date(day.getFullYear(), day.getMonth(), 1);
}

interface Day {
  readonly failed: Run[];
  readonly succeeded: Run[];
  readonly running: Run[];
  readonly coming: string[];
}

function byDay(runs: readonly Run[], coming: Forecast['runs']): (date: Date) => Day {
  const days = new Map<string, Day>();
  const dayOf = (date: Date): Day => {
    const key = date.toDateString();
    const day = days.get(key) ?? { failed: [], succeeded: [], running: [], coming: [] };
    days.set(key, day);
    return day;
  };
  for (const run of runs) dayOf(parseDate(run.due_at))[outcomeOf(run)].push(run);
  for (const run of coming) dayOf(parseDate(run.utc)).coming.push(run.utc);
  return dayOf;
}

function outcomeOf(run: Run): 'failed' | 'succeeded' | 'running' {
  if (run.failed.length > 0) return 'failed';
  return run.done_at === null ? 'running' : 'succeeded';
}

interface MonthProps {
  readonly month: Date;
  readonly runs: readonly Run[];
  readonly coming: Forecast['runs'];
}

function Month({ month, runs, coming }: MonthProps) {
  const dayOf = byDay(runs, coming);
  const length = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate();
  const dates = Array.from({ length }, (_, index) => new Date(month.getFullYear(), month.getMonth(), index + 1));
  const before = (month.getDay() + 6) % 7;
  const after = (7 - ((before + length) % 7)) % 7;
  const [today] = useState(() => new Date().toDateString());
  // 1 January 2024 was a Monday.
  const weekdays = Array.from({ length: 7 }, (_, index) => weekdayName.format(new Date(2024, 0, index + 1)));
  return (
    <div className="calendar">
      {weekdays.map((name) => (
        <div key={name} className="weekday" aria-hidden="true">
          {name}
        </div>
      ))}
      {Array.from({ length: before }, (_, index) => (
        <div key={`before-${index}`} className="outside" />
      ))}
      {dates.map((date) => (
        <div key={date.getDate()} className={date.toDateString() === today ? 'today' : undefined}>
          <span className="day">{date.getDate()}</span>
          <DayRuns day={dayOf(date)} />
        </div>
      ))}
      {Array.from({ length: after }, (_, index) => (
        <div key={`after-${index}`} className="outside" />
      ))}
    </div>
  );
}

function DayRuns({ day }: { day: Day }) {
  const badges = [
    ['bad', day.failed.map((run) => run.due_at), 'failed'],
    ['busy', day.running.map((run) => run.due_at), 'running'],
    ['ok', day.succeeded.map((run) => run.due_at), 'done'],
    ['', day.coming, 'coming'],
  ] as const;
  return badges.map(
    ([tone, times, text]) =>
      times.length > 0 && (
        <div key={text} className={`badge ${tone}`} title={times.map((at) => formatDate(parseDate(at))).join('\n')}>
          {times.length} {text}
        </div>
      ),
  );
}

function PastRuns({ policy, runs }: { policy: Policy; runs: readonly Run[] }) {
  const names = new Map((policy.volumes ?? []).map((volume) => [volume.volume_id, volume.volume_name]));
  if (runs.length === 0)
    return <EmptyState title="No runs yet">Creating or resuming a policy starts no run.</EmptyState>;
  return (
    <Table
      label="Past runs"
      rows={runs.slice(0, LISTED_RUNS)}
      rowKey={(run) => run.id}
      columns={[
        { key: 'due', title: 'Due', render: (run) => <FullDate at={run.due_at} /> },
        { key: 'state', title: 'State', render: (run) => <StatusBadge status={stateOf(run)} /> },
        { key: 'snapshots', title: 'Snapshots', kind: 'number', render: (run) => run.snapshots.length },
        { key: 'expired', title: 'Deleted', kind: 'number', render: (run) => run.expired.length },
        {
          key: 'failed',
          title: 'Failures',
          kind: 'wrap',
          render: (run) => (
            <ul>
              {run.failed.map((failure) => (
                <li key={failure.volume_id}>
                  <bdi>{names.get(failure.volume_id) ?? failure.volume_id}</bdi>: {failure.message}
                </li>
              ))}
            </ul>
          ),
        },
      ]}
    />
  );
}

function stateOf(run: Run): string {
  return { failed: 'failed', succeeded: 'done', running: 'running' }[outcomeOf(run)];
}
