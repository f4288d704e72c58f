/** The notification about runs of a policy that were late or skipped. */
import { withZone } from '../../../platform/clock.ts';
import type { Message } from '../../notifications/service.ts';
import type { MissedRunRow, PolicyOfReport } from './store.ts';

/** Rows of the table, and entries of `data`; the message says how many there are. */
const maxListed = 50;

export function missedMessage(policy: PolicyOfReport, missed: MissedRunRow[], windowMinutes: number): Message {
  const skipped = missed.reduce((sum, run) => sum + run.skipped, 0);
  const what = [`${missed.length} late`, ...(skipped > 0 ? [`${skipped} skipped`] : [])].join(', ');
  const listed = missed.slice(0, maxListed);
  return {
    clientId: policy.clientId,
    type: 'lifecycle_policy_run_missed',
    subject: `Lifecycle policy ${policy.name}: runs were missed (${what})`,
    body: {
      paragraphs: [
        `Lifecycle policy ${policy.name} (${policy.id}) did not run on time:`,
        'A late run starts as soon as its region has a worker, and replaces the runs that were due meanwhile. The next ' +
          `notification about this policy follows after ${windowMinutes} minutes at the earliest.`,
      ],
      figures: {
        columns: ['Schedule', 'Due', 'Started', 'Skipped'],
        rows: listed.map(({ scheduleId, scheduledAt, startedAt, skipped }) => [
          scheduleId,
          withZone(scheduledAt),
          withZone(startedAt) ?? 'not yet',
          String(skipped),
        ]),
      },
    },
    data: {
      policy_id: policy.id,
      policy_name: policy.name,
      project_id: policy.projectId,
      region_id: policy.regionId,
      late_count: missed.length,
      skipped_count: skipped,
      missed: listed.map(({ scheduleId, scheduledAt, startedAt, skipped }) => ({
        schedule_id: scheduleId,
        due_at: withZone(scheduledAt),
        started_at: withZone(startedAt),
        skipped,
      })),
    },
  };
}
