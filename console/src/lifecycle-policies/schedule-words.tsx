import type { Schedule, ScheduleInput } from './data.ts';
import { cronText, durationText, useWords } from './words.ts';

/** When a schedule runs: in words, and as it is configured. */
export function ScheduleWords({ schedule }: { schedule: Schedule | ScheduleInput }) {
  const words = useWords(schedule);
  const timezone = 'timezone' in schedule ? (schedule.timezone ?? 'UTC') : 'UTC';
  const text = schedule.type === 'cron' ? cronText(schedule) : null;
  return (
    <span>
      {words ?? (text === null ? 'No interval yet' : 'At the times of')}
      {text !== null && (
        <>
          {' '}
          <code>{text}</code> <span className="muted">{timezone}</span>
        </>
      )}
    </span>
  );
}

/** How long a schedule keeps snapshots: `7, at most 2 weeks`. */
export function retentionText(schedule: Schedule | ScheduleInput): string {
  const age = durationText(schedule.retention_time);
  const count = `${schedule.max_quantity ?? 2} of each volume`;
  return age === null ? count : `${count}, at most ${age}`;
}
