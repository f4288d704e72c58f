import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { ByCode } from '../ui/by-code.tsx';
import { CodeBlock } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { taskTitle } from '../ui/task-text.ts';
import { FullDate, parseDate } from '../ui/time.tsx';
import { ACKNOWLEDGE, isAcknowledgeable, type Task, taskQuery } from './data.ts';
import { Acknowledge } from './list.tsx';
import { TaskResource, useResourceNames } from './resource.tsx';

/** Pages of the kinds in `created_resources`. */
const PAGES: Readonly<Record<string, string>> = {
  file_shares: 'file-shares',
  loadbalancers: 'load-balancers',
  volumes: 'volumes',
  snapshots: 'snapshots',
  networks: 'networks',
  subnets: 'subnets',
  secrets: 'secrets',
};

export function TaskDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  return (
    <DetailPage
      crumbs={[{ title: 'Tasks', to: scope.path('tasks') }]}
      query={useQuery(taskQuery(id))}
      titleOf={(task) => taskTitle(task.task_type)}
      statusOf={(task) => task.state}
      actions={(task) => <Acknowledge key={task.id} task={task} />}
      tabs={(task) => [
        { key: 'overview', title: 'Overview', render: () => <Overview task={task} scope={scope} /> },
        {
          key: 'data',
          title: 'Parameters',
          render: () => <CodeBlock text={JSON.stringify(task.data ?? {}, null, 2)} />,
        },
      ]}
    />
  );
}

function Overview({ task, scope }: { task: Task; scope: Scope }) {
  const names = useResourceNames([task]);
  const policyId = task.lifecycle_policy_id;
  return (
    <>
      {task.error && (
        <div className="notice bad" role="alert">
          {task.error}
        </div>
      )}
      <Card title="Properties">
        <Properties
          items={{
            Resource: <TaskResource task={task} names={names} />,
            Type: <code>{task.task_type}</code>,
            Started: <FullDate at={task.created_on} />,
            Ended: <FullDate at={task.finished_on} />,
            Took: durationOf(task),
            Acknowledged: <FullDate at={task.acknowledged_at} />,
            Created: createdResources(task, scope),
            'Token ID': task.user_id,
            'Request ID': task.request_id && <code>{task.request_id}</code>,
            'Lifecycle policy': policyId !== null && (
              <Link to={scope.path('lifecycle-policies', String(policyId))} search={{ tab: 'calendar' } as never}>
                {String(policyId)}
              </Link>
            ),
            ID: <code>{task.id}</code>,
          }}
        />
        {isAcknowledgeable(task) && (
          <div className="card-body">
            <ByCode
              calls={[
                { operationId: 'acknowledgeTask', method: 'POST', path: ACKNOWLEDGE, params: { task_id: task.id } },
              ]}
            />
          </div>
        )}
      </Card>
    </>
  );
}

function durationOf({ created_on: from, finished_on: to }: Task): string | null {
  if (!from || !to) return null;
  const seconds = Math.max(0, parseDate(to).getTime() - parseDate(from).getTime()) / 1000;
  const whole = Math.round(seconds);
  return whole < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function createdResources({ created_resources: created }: Task, scope: Scope) {
  const entries = Object.entries(created ?? {}).flatMap(([kind, ids]) => ids.map((id) => ({ kind, id })));
  if (entries.length === 0) return null;
  return entries.map(({ kind, id }) => {
    const page = PAGES[kind];
    return (
      <div key={`${kind} ${id}`}>
        {kind}: {page ? <Link to={scope.path(page, id)}>{id}</Link> : <code>{id}</code>}
      </div>
    );
  });
}
