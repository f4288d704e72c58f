import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useReadOnlyReason } from '../api/session.ts';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { auditTab } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';
import { Calendar } from './calendar.tsx';
import { forecastQuery, type Policy, policyQuery, type Schedule } from './data.ts';
import { Expiring } from './expiring.tsx';
import { Foresight } from './foresight.tsx';
import { notRunnableReason } from './run.tsx';
import { retentionText, ScheduleWords } from './schedule-words.tsx';
import { scheduleForEdit, toScheduleInput } from './schedule-input.ts';

export function PolicyDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const query = useQuery(policyQuery(scope, id));
  const to = (...action: string[]) => scope.path('lifecycle-policies', id, ...action);
  const toggle =
    query.data?.status === 'paused'
      ? { title: 'Resume this policy', to: to('resume') }
      : { title: 'Pause this policy', to: to('pause') };
  usePageActions([
    { title: 'Edit this policy', to: to('edit') },
    toggle,
    { title: 'Run this policy now', to: to('run') },
    { title: 'Add a schedule', to: to('schedules', 'new') },
    { title: 'Add volumes', to: to('volumes', 'add') },
    { title: 'Delete this policy', to: to('delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Lifecycle policies', to: scope.path('lifecycle-policies') }]}
      query={query}
      driverKind="volumes"
      titleOf={(policy) => policy.name}
      statusOf={(policy) => policy.status}
      actions={(policy) => <Actions policy={policy} />}
      tabs={(policy) => [
        { key: 'overview', title: 'Overview', render: () => <Overview policy={policy} /> },
        { key: 'calendar', title: 'Calendar', render: () => <Calendar policy={policy} /> },
        { key: 'retention', title: 'Retention', render: () => <Expiring policy={policy} /> },
        {
          key: 'volumes',
          title: `Volumes (${policy.volumes?.length ?? 0})`,
          render: () => <Volumes policy={policy} />,
        },
        // Policies have no tags, and change without tasks; the calendar links the tasks of runs.
        auditTab({ table: 'lifecycle_policies', id: policy.id }),
      ]}
    />
  );
}

function Actions({ policy }: { policy: Policy }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const to = (action: string) => scope.path('lifecycle-policies', policy.id, action);
  return (
    <>
      <ActionLink to={to('edit')} disabledReason={readOnly}>
        Edit
      </ActionLink>
      <ActionLink to={to(policy.status === 'paused' ? 'resume' : 'pause')} disabledReason={readOnly}>
        {policy.status === 'paused' ? 'Resume' : 'Pause'}
      </ActionLink>
      <ActionLink to={to('run')} disabledReason={readOnly ?? notRunnableReason(policy)}>
        Run now
      </ActionLink>
      <ActionLink to={to('delete')} className="danger" disabledReason={readOnly}>
        Delete
      </ActionLink>
    </>
  );
}

function Overview({ policy }: { policy: Policy }) {
  const scope = useScope();
  const next = useQuery(forecastQuery(scope, policy.id)).data?.runs[0];
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            'Next run': policy.status === 'paused' ? 'none while it is paused' : next && <FullDate at={next.utc} />,
            Schedules: policy.schedules.length,
            Volumes: policy.volumes?.length ?? 0,
            ID: policy.id,
          }}
        />
        <div className="card-body">
          <Foresight
            schedules={policy.schedules.map((schedule) => toScheduleInput(scheduleForEdit(schedule)))}
            volumeIds={(policy.volumes ?? []).map((volume) => volume.volume_id)}
          />
        </div>
      </Card>
      <Schedules policy={policy} />
    </>
  );
}

function Schedules({ policy }: { policy: Policy }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const runs = useQuery(forecastQuery(scope, policy.id)).data?.runs ?? [];
  const to = (...action: string[]) => scope.path('lifecycle-policies', policy.id, 'schedules', ...action);
  const add = (
    <ActionLink to={to('new')} className="small" disabledReason={readOnly}>
      <Icon name="plus" /> Add schedule
    </ActionLink>
  );
  return (
    <Card title="Schedules" actions={add}>
      <Table
        label="Schedules"
        empty={<EmptyState title="No schedules">Without a schedule the policy creates no snapshots.</EmptyState>}
        rows={policy.schedules}
        rowKey={(schedule) => schedule.id}
        columns={[
          {
            key: 'words',
            title: 'Runs',
            kind: 'wrap',
            render: (schedule) => <ScheduleWords schedule={schedule} />,
          },
          { key: 'keeps', title: 'Keeps', kind: 'wrap', render: retentionText },
          {
            key: 'next',
            title: 'Next run',
            render: (schedule) => <FullDate at={runs.find((run) => run.schedule_id === schedule.id)?.utc} />,
          },
          {
            key: 'actions',
            title: 'Actions',
            kind: 'actions',
            render: (schedule) => (
              <>
                <ActionLink to={to(schedule.id)} className="small quiet" disabledReason={readOnly}>
                  Edit<span className="visually-hidden"> schedule {scheduleNumber(policy, schedule)}</span>
                </ActionLink>
                <ActionLink to={to(schedule.id, 'remove')} className="small quiet danger" disabledReason={readOnly}>
                  Remove<span className="visually-hidden"> schedule {scheduleNumber(policy, schedule)}</span>
                </ActionLink>
              </>
            ),
          },
        ]}
      />
    </Card>
  );
}

function scheduleNumber(policy: Policy, schedule: Schedule): number {
  return policy.schedules.indexOf(schedule) + 1;
}

function Volumes({ policy }: { policy: Policy }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const add = (
    <ActionLink
      to={scope.path('lifecycle-policies', policy.id, 'volumes', 'add')}
      className="small"
      disabledReason={readOnly}
    >
      <Icon name="plus" /> Add volumes
    </ActionLink>
  );
  const volumes = policy.volumes ?? [];
  return (
    <Card title="Volumes" actions={add}>
      <Table
        label="Volumes"
        rows={volumes}
        rowKey={(volume) => volume.volume_id}
        columns={[
          {
            key: 'name',
            title: 'Name',
            kind: 'name',
            render: (volume) => <Link to={scope.path('volumes', volume.volume_id)}>{volume.volume_name}</Link>,
          },
          { key: 'id', title: 'ID', render: (volume) => <code>{volume.volume_id}</code> },
          {
            key: 'actions',
            title: 'Actions',
            kind: 'actions',
            render: (volume) => (
              <ActionLink
                to={scope.path('lifecycle-policies', policy.id, 'volumes', volume.volume_id, 'remove')}
                className="small quiet danger"
                disabledReason={readOnly}
              >
                Remove<span className="visually-hidden"> volume {volume.volume_name}</span>
              </ActionLink>
            ),
          },
        ]}
        empty={
          <EmptyState title="No volumes">The policy creates snapshots of the volumes that are added to it.</EmptyState>
        }
      />
    </Card>
  );
}
