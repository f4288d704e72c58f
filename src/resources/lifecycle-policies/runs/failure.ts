/** Notifications about schedules whose runs begin to fail, and the errors of the tasks of runs. */
import { withZone } from '../../../platform/clock.ts';
import type { Message } from '../../notifications/service.ts';
import type { RunReport } from './store.ts';

/** Volumes that the error of a task names. */
const maxNamed = 3;

/** Why a run that a client requested failed. */
export function taskErrorOf({ failed, volumes }: RunReport): string {
  const named = failed.slice(0, maxNamed).map(({ volume_id, message }) => `volume ${volume_id}: ${message}`);
  const others = failed.length > maxNamed ? '; …' : '';
  return `${failed.length} of ${volumes} snapshots failed: ${named.join('; ')}${others}`;
}

export function failureOf(report: RunReport): Message {
  const { policyId, policyName, failed, volumes, clientId } = report;
  const due = withZone(report.scheduledAt);
  return {
    clientId,
    type: 'lifecycle_policy_run_failed',
    subject: `Lifecycle policy ${policyName}: ${failed.length} of ${volumes} snapshots failed`,
    body: {
      paragraphs: [
        `The run of lifecycle policy ${policyName} (${policyId}) due at ${due} failed to create ${failed.length} of ` +
          `${volumes} snapshots. The schedule stays active.`,
        'The next notification follows when a run fails after one that succeeded.',
      ],
      figures: { columns: ['Volume', 'Reason'], rows: failed.map(({ volume_id, message }) => [volume_id, message]) },
    },
    data: {
      policy_id: policyId,
      policy_name: policyName,
      project_id: report.projectId,
      region_id: report.regionId,
      schedule_id: report.scheduleId,
      run_id: report.runId,
      due_at: due,
      failed,
    },
  };
}
