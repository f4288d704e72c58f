import './lifecycle-policies.css';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import { messageOf } from '../api/errors.ts';
import { formatGib, formatNumber } from '../ui/numbers.ts';
import { PriceText, useSettled } from '../ui/price.tsx';
import { type Scope, scopeParams, useScope } from '../ui/scope.tsx';
import { formatDate, parseDate } from '../ui/time.tsx';
import { KIND, POLICIES, type ScheduleInput } from './data.ts';
import { ScheduleWords } from './schedule-words.tsx';

const SHOWN_RUNS = 4;

const wallClock = new Intl.DateTimeFormat(undefined, {
  ...{ weekday: 'short', year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' },
  timeZone: 'UTC',
});

/** `2026-11-30T03:00:00+01:00` as a date and time in the zone of the schedule, which is written beside it. */
function localTime(text: string): string {
  return wallClock.format(new Date(`${text.slice(0, 19)}Z`));
}

/** Words and next run times of a schedule while it is typed. */
export function ScheduleForesight({ schedule }: { schedule: ScheduleInput }) {
  const scope = useScope();
  const settled = useSettled(schedule);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: [KIND, scope.project, scope.region, 'preview', settled],
    queryFn: () =>
      unwrap(
        api.POST(`${POLICIES}/preview_schedule`, {
          params: { path: scopeParams(scope) },
          body: { schedule: settled, count: SHOWN_RUNS },
        }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });
  return (
    <div className="foresight" role="status" aria-label="Next runs">
      <ScheduleWords schedule={schedule} />
      {error ? (
        <p className="muted">{messageOf(error)}</p>
      ) : (
        <ol aria-busy={isPlaceholderData}>
          {data?.runs.map((run) => (
            <li key={run.utc}>
              <time dateTime={run.utc} title={formatDate(parseDate(run.utc))}>
                {localTime(run.local)}
              </time>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

interface Plan {
  readonly schedules: readonly ScheduleInput[];
  readonly volumeIds: readonly string[];
}

const usageQuery = (scope: Scope, { schedules, volumeIds }: Plan) => ({
  queryKey: [KIND, scope.project, scope.region, 'usage', schedules, volumeIds],
  queryFn: () =>
    unwrap(
      api.POST(`${POLICIES}/estimate_max_policy_usage`, {
        params: { path: scopeParams(scope) },
        body: {
          action: 'volume_snapshot' as const,
          name: 'estimate',
          schedules: [...schedules],
          volume_ids: [...volumeIds],
        },
      }),
    ),
  retry: false,
});

/** The most that a policy would keep at a time: number, size and price of its snapshots. */
export function Foresight(plan: Plan) {
  const scope = useScope();
  const settled = useSettled(plan);
  const query = useQuery({ ...usageQuery(scope, settled), placeholderData: keepPreviousData });
  const { data, error } = query;
  return (
    <div className="price" role="status" aria-label="Maximum usage" aria-busy={query.isPlaceholderData}>
      <span>At most</span>
      {error ? (
        <span className="muted">{messageOf(error)}</span>
      ) : (
        <span>
          <strong>{formatNumber(data?.max_volume_snapshot_count_usage ?? 0)}</strong> snapshots
          {' · '}
          <strong>{formatGib(data?.max_volume_snapshot_size_usage ?? 0)}</strong>
          {' · '}
          <PriceText price={data?.max_cost} />
        </span>
      )}
    </div>
  );
}
