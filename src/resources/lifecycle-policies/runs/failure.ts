/** What a client is told when a schedule begins to fail, in the words of the notifications. */
import { withZone } from '../../../platform/clock.ts';
import type { RunReport } from './store.ts';

export interface Failure {
  clientId: number;
  type: 'lifecycle_policy_run_failed';
  subject: string;
  body: { paragraphs: string[]; figures: { columns: string[]; rows: string[][] } };
  data: Record<string, unknown>;
}

export function failureOf(report: RunReport): Failure {
  const { policyId, policyName, failed, volumes, clientId } = report;
  const due = withZone(report.scheduledAt);
  return {
    clientId,
    type: 'lifecycle_policy_run_failed',
    subject: `Lifecycle policy ${policyName}: ${failed.length} of ${volumes} snapshots failed`,
    body: {
      paragraphs: [
        `The run of lifecycle policy ${policyName} (${policyId}) that was due at ${due} could not make ${failed.length} ` +
          `of ${volumes} snapshots. Its schedule goes on.`,
        'You will be told again when it fails after a run that succeeded.',
      ],
      figures: { columns: ['Volume', 'Why'], rows: failed.map(({ volume_id, message }) => [volume_id, message]) },
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
