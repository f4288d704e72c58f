import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { messageOf } from '../api/errors.ts';
import { queryClient } from '../api/query-client.ts';
import { useReadOnlyReason } from '../api/session.ts';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND, POLICY, policiesQuery, policyParams } from './data.ts';
import type { Policy } from './data.ts';
import { retentionText, ScheduleWords } from './schedule-words.tsx';

type Status = Policy['status'];

interface Selection {
  readonly ids: ReadonlySet<number>;
  readonly toggle: (id: number) => void;
}

const columnsOf = (scope: Scope, { ids, toggle }: Selection): Column<Policy>[] => [
  {
    key: 'select',
    title: 'Select',
    kind: 'actions',
    render: (policy) => (
      <input
        type="checkbox"
        aria-label={`Select ${policy.name}`}
        checked={ids.has(policy.id)}
        onChange={() => toggle(policy.id)}
      />
    ),
  },
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (policy) => policy.name,
    render: (policy) => (
      <Link to={scope.path('lifecycle-policies', policy.id)}>
        <bdi>{policy.name}</bdi>
      </Link>
    ),
  },
  {
    key: 'status',
    title: 'Status',
    sortBy: (policy) => policy.status,
    render: (policy) => <StatusBadge status={policy.status} />,
  },
  {
    key: 'schedules',
    title: 'Schedules',
    kind: 'wrap',
    sortBy: (policy) => policy.schedules.length,
    render: (policy) =>
      policy.schedules.length === 0 ? (
        <span className="muted">none</span>
      ) : (
        <ul>
          {policy.schedules.map((schedule) => (
            <li key={schedule.id}>
              <ScheduleWords schedule={schedule} />
              <span className="muted"> · keeps {retentionText(schedule)}</span>
            </li>
          ))}
        </ul>
      ),
  },
  {
    key: 'volumes',
    title: 'Volumes',
    kind: 'number',
    sortBy: (policy) => policy.volumes?.length ?? 0,
    render: (policy) => policy.volumes?.length ?? 0,
  },
  { key: 'id', title: 'ID', kind: 'number', sortBy: (policy) => policy.id, render: (policy) => policy.id },
];

export function PolicyList() {
  const scope = useScope();
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const query = useQuery(policiesQuery(scope));
  const ids = new Set((query.data?.results ?? []).filter(({ id }) => chosen.has(id)).map(({ id }) => id));
  const toggle = (id: number) => setChosen(ids.has(id) ? new Set([...ids].filter((each) => each !== id)) : ids.add(id));
  const policies = (query.data?.results ?? []).filter(({ id }) => ids.has(id));
  return (
    <ListPage
      title="Lifecycle policies"
      description="Snapshots of volumes on a schedule, and how long they are kept."
      driverKind="volumes"
      query={query}
      columns={columnsOf(scope, { ids, toggle })}
      rowKey={(policy) => policy.id}
      textOf={(policy) =>
        [policy.name, policy.id, ...(policy.volumes ?? []).map((volume) => volume.volume_name)].join(' ')
      }
      filters={[{ name: 'status', label: 'Status', valueOf: (policy) => policy.status }]}
      actions={
        <>
          <SetStatusOfMany label="Pause" status="paused" policies={policies} clear={() => setChosen(new Set())} />
          <SetStatusOfMany label="Resume" status="active" policies={policies} clear={() => setChosen(new Set())} />
        </>
      }
      create={{ label: 'Create lifecycle policy', to: scope.path('lifecycle-policies', 'new') }}
      empty={{
        title: 'No lifecycle policies yet',
        text: 'A lifecycle policy creates snapshots of volumes on a schedule and deletes old ones.',
      }}
    />
  );
}

interface SetStatusOfManyProps {
  readonly label: string;
  readonly status: Status;
  readonly policies: readonly Policy[];
  readonly clear: () => void;
}

/** Pauses or resumes the selected policies. Each is a request of its own, so one failure does not stop the others. */
function SetStatusOfMany({ label, status, policies, clear }: SetStatusOfManyProps) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const changed = policies.filter((policy) => policy.status !== status);
  const change = useMutation({
    mutationFn: async () => {
      const results = await Promise.allSettled(
        changed.map(({ id }) =>
          unwrap(api.PATCH(POLICY, { params: { path: policyParams(scope, id), query: {} }, body: { status } })),
        ),
      );
      const failed = results.flatMap((result, index) =>
        result.status === 'rejected' ? [`${changed[index]!.name}: ${messageOf(result.reason)}`] : [],
      );
      if (failed.length > 0) return showToast({ tone: 'bad', text: `${label} failed. ${failed.join('; ')}` });
      clear();
      const count = changed.length === 1 ? '1 policy' : `${changed.length} policies`;
      return showToast({ tone: 'ok', text: `${status === 'paused' ? 'Paused' : 'Resumed'} ${count}` });
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: [KIND] }),
  });
  const reason =
    readOnly ??
    (policies.length === 0 ? 'Select policies first' : changed.length === 0 ? `All selected are ${status}` : null);
  return (
    <button
      type="button"
      className="button"
      aria-disabled={reason !== null || change.isPending}
      title={reason ?? undefined}
      onClick={() => reason === null && !change.isPending && change.mutate()}
    >
      {label} selected{changed.length > 0 && ` (${changed.length})`}
    </button>
  );
}
