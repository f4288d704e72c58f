import './lifecycle-policies.css';
import { useQuery } from '@tanstack/react-query';
import { serverNow } from '../api/server-clock.ts';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { useListState } from '../ui/list-state.ts';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { formatDate, parseDate } from '../ui/time.tsx';
import { useServerNow } from '../ui/use-server-now.ts';
import {
  COMING_RUNS,
  type Forecast,
  forecastQuery,
  type MissedRun,
  missedRunsQuery,
  type Policy,
  type Run,
  runsQuery,
} from './data.ts';
import { MissedRuns, outcomeOf, PastRuns } from './run-tables.tsx';

const monthName = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric' });
const weekdayName = new Intl.DateTimeFormat('en', { weekday: 'short' });

/** Past runs with their failures, missed runs and coming runs, by day in the browser's time zone. The month is in the URL. */
export function Calendar({ policy }: { policy: Policy }) {
  const scope = useScope();
  const state = useListState();
  const runs = useQuery(runsQuery(scope, policy.id));
  const forecast = useQuery(forecastQuery(scope, policy.id));
  const missed = useQuery(missedRunsQuery(scope, policy.id));
  if (!runs.data || !forecast.data || !missed.data) {
    const first = [runs, forecast, missed].find(({ data }) => !data)!;
    return <NotLoaded query={first} rows={8} />;
  }
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
  const until = completeUntil(forecast.data.runs);
  const coming = forecast.data.runs.filter(({ utc }) => until === null || parseDate(utc) <= until);
  return (
    <>
      <Card title={monthName.format(month)} actions={tools}>
        <Month month={month} runs={runs.data.results} missed={missed.data.results} coming={coming} />
        {until && <p className="card-body muted">Coming runs are shown until {formatDate(until)}.</p>}
      </Card>
      {missed.data.count > 0 && <MissedRuns policy={policy} missed={missed.data.results} />}
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
  const day = at === undefined ? new Date(serverNow()) : parseDate(at);
  return new Date(day.getFullYear(), day.getMonth(), 1);
}

/** The last time until which the runs of every schedule are known; null if all are. */
function completeUntil(coming: Forecast['runs']): Date | null {
  const bySchedule = Map.groupBy(coming, (run) => run.schedule_id);
  const ends = [...bySchedule.values()].filter((runs) => runs.length >= COMING_RUNS).map((runs) => runs.at(-1)!.utc);
  return ends.length === 0 ? null : new Date(Math.min(...ends.map((at) => parseDate(at).getTime())));
}

/** Times of the runs of a day, by kind. */
type Day = Record<'failed' | 'succeeded' | 'running' | 'late' | 'missed' | 'skipped' | 'coming', string[]>;

function byDay({ runs, missed, coming }: Omit<MonthProps, 'month'>): (date: Date) => Day {
  const days = new Map<string, Day>();
  const dayOf = (date: Date): Day => {
    const key = date.toDateString();
    const empty: Day = { failed: [], succeeded: [], running: [], late: [], missed: [], skipped: [], coming: [] };
    const day = days.get(key) ?? empty;
    days.set(key, day);
    return day;
  };
  const add = (at: string, kind: keyof Day) => dayOf(parseDate(at))[kind].push(at);
  for (const run of runs) add(run.due_at, outcomeOf(run));
  for (const run of missed) {
    add(run.due_at, run.started_at === null ? 'missed' : 'late');
    for (const at of run.skipped_at) add(at, 'skipped');
  }
  for (const run of coming) add(run.utc, 'coming');
  return dayOf;
}

interface MonthProps {
  readonly month: Date;
  readonly runs: readonly Run[];
  readonly missed: readonly MissedRun[];
  readonly coming: Forecast['runs'];
}

function Month({ month, ...all }: MonthProps) {
  const dayOf = byDay(all);
  const length = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate();
  const dates = Array.from({ length }, (_, index) => new Date(month.getFullYear(), month.getMonth(), index + 1));
  const before = (month.getDay() + 6) % 7;
  const after = (7 - ((before + length) % 7)) % 7;
  const today = new Date(useServerNow()).toDateString();
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
        <div key={date.getDate()} aria-current={date.toDateString() === today ? 'date' : undefined}>
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

const BADGES = [
  ['failed', 'bad', 'failed'],
  ['missed', 'bad', 'missed'],
  ['late', 'warn', 'late'],
  ['skipped', 'warn', 'skipped'],
  ['running', 'busy', 'running'],
  ['succeeded', 'ok', 'done'],
  ['coming', '', 'coming'],
] as const;

function DayRuns({ day }: { day: Day }) {
  return BADGES.map(
    ([kind, tone, text]) =>
      day[kind].length > 0 && (
        <div key={kind} className={`badge ${tone}`} title={day[kind].map((at) => formatDate(parseDate(at))).join('\n')}>
          {day[kind].length} {text}
        </div>
      ),
  );
}
