import { Link } from '@tanstack/react-router';
import { Card } from '../ui/detail-page.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { durationText, FullDate, parseDate } from '../ui/time.tsx';
import type { MissedRun, Policy, Run } from './data.ts';

/** Runs that are listed; the calendar has all. */
const LISTED_RUNS = 50;

export function outcomeOf(run: Run): 'failed' | 'succeeded' | 'running' {
  if (run.failed.length > 0) return 'failed';
  return run.done_at === null ? 'running' : 'succeeded';
}

/** Runs of a policy, newest first. */
export function PastRuns({ policy, runs }: { policy: Policy; runs: readonly Run[] }) {
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
        { key: 'start', title: 'Started by', render: (run) => <StartedBy run={run} /> },
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

/** `schedule`, or a link to the task of the request. */
function StartedBy({ run }: { run: Run }) {
  const scope = useScope();
  if (run.task_id === null) return 'schedule';
  return <Link to={scope.path('tasks', run.task_id)}>request</Link>;
}

/** Runs that started late or not at all, and why. */
export function MissedRuns({ policy, missed }: { policy: Policy; missed: readonly MissedRun[] }) {
  const numberOf = (id: string) => policy.schedules.findIndex((schedule) => schedule.id === id) + 1;
  return (
    <Card title="Missed runs">
      <p className="card-body muted">
        A run is missed when the region has no worker that can start it, for example while the server is down. When a
        worker is available again, the schedule runs once.
      </p>
      <Table
        label="Missed runs"
        rows={missed.slice(0, LISTED_RUNS)}
        rowKey={(run) => `${run.schedule_id} ${run.due_at}`}
        columns={[
          { key: 'due', title: 'Due', render: (run) => <FullDate at={run.due_at} /> },
          {
            key: 'schedule',
            title: 'Schedule',
            kind: 'number',
            render: (run) => numberOf(run.schedule_id) || 'removed',
          },
          { key: 'what', title: 'Outcome', kind: 'wrap', render: happened },
        ]}
      />
    </Card>
  );
}

function happened({ due_at, started_at, skipped }: MissedRun): string {
  if (started_at === null) return 'Has not started';
  const late = durationText((parseDate(started_at).getTime() - parseDate(due_at).getTime()) / 1000);
  const count = skipped >= 1000 ? '1,000 or more' : String(skipped);
  const replaced = skipped === 0 ? '' : `, and replaced ${count} later ${skipped === 1 ? 'run' : 'runs'}`;
  return `Started ${late} late${replaced}`;
}
