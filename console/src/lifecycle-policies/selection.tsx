import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Call } from '../ui/by-code.tsx';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useListState } from '../ui/list-state.ts';
import { useScope } from '../ui/scope.tsx';
import { KIND, OWN_POLICY, policiesQuery, POLICY, type Policy, policyParams } from './data.ts';

/** The policies that are selected in the list. Their ids are in the URL. */
export function useSelection() {
  const state = useListState();
  const navigate = useNavigate();
  const { data } = useQuery(policiesQuery(useScope()));
  const ids = idsOf(state.get('ids'));
  const policies = (data?.results ?? []).filter(({ id }) => ids.has(String(id)));
  return {
    isLoaded: data !== undefined,
    policies,
    has: (id: number) => ids.has(String(id)),
    /** Inverts the selection of these policies. */
    toggle: (...changed: number[]) => {
      // From the URL at that time: the list may not have been rendered since the last change.
      const search = (previous: { ids?: string }) => ({ ...previous, ids: toggled(previous.ids ?? '', changed) });
      void navigate({ to: '.', search, replace: true, resetScroll: false } as never);
    },
  };
}

const idsOf = (text: string) => new Set(text.split(',').filter(Boolean));

function toggled(text: string, changed: readonly number[]): string {
  const ids = idsOf(text);
  for (const id of changed.map(String)) if (!ids.delete(id)) ids.add(id);
  return [...ids].join(',');
}

export const pausable = ({ status }: Policy) => status !== 'paused';
export const resumable = ({ status }: Policy) => status !== 'active';
export const runnable = ({ status, schedules }: Policy) => status === 'active' && schedules.length > 0;

export function PauseSelected() {
  return <StatusDialog verb="Pause" done="Paused" status="paused" applies={pausable} />;
}

export function ResumeSelected() {
  return <StatusDialog verb="Resume" done="Resumed" status="active" applies={resumable} />;
}

export function RunSelected() {
  const scope = useScope();
  return (
    <SelectionDialog
      applies={runnable}
      title={(count) => `Run ${count}`}
      submitLabel="Run now"
      texts={(count) => ({ busy: `Running ${count}`, done: `Ran ${count}` })}
      callOf={(id) => ({
        operationId: 'runLifecyclePolicy',
        method: 'POST',
        path: `${OWN_POLICY}/run`,
        params: policyParams(scope, id),
        body: {},
      })}
      text="Each schedule creates its snapshots now, with its names and its retention. The next scheduled run is unchanged."
    />
  );
}

interface StatusDialogProps {
  readonly verb: string;
  readonly done: string;
  readonly status: Policy['status'];
  readonly applies: (policy: Policy) => boolean;
}

function StatusDialog({ verb, done, status, applies }: StatusDialogProps) {
  const scope = useScope();
  return (
    <SelectionDialog
      applies={applies}
      title={(count) => `${verb} ${count}`}
      submitLabel={verb}
      texts={(count) => ({ done: `${done} ${count}` })}
      callOf={(id) => ({
        operationId: 'updateLifecyclePolicy',
        method: 'PATCH',
        path: POLICY,
        params: policyParams(scope, id),
        body: { status },
      })}
      text={
        status === 'paused'
          ? 'While a policy is paused, no schedule runs and no snapshot expires.'
          : 'Each schedule continues with its next run time. Skipped runs are not repeated.'
      }
    />
  );
}

interface SelectionDialogProps {
  readonly applies: (policy: Policy) => boolean;
  /** `count`: such as `2 policies`. */
  readonly title: (count: string) => string;
  readonly submitLabel: string;
  readonly texts: (count: string) => { readonly busy?: string; readonly done: string };
  readonly callOf: (id: number) => Call;
  readonly text: string;
}

/** Each policy is a request of its own, so one failure does not stop the others. */
function SelectionDialog({ applies, title, submitLabel, texts, callOf, text }: SelectionDialogProps) {
  const scope = useScope();
  const selection = useSelection();
  if (!selection.isLoaded) return null;
  const policies = selection.policies.filter(applies);
  const count = policies.length === 1 ? '1 policy' : `${policies.length} policies`;
  // The URL of the dialog may be a bookmark without a selection.
  const [first = 0, ...others] = policies.map(({ id }) => id);
  return (
    <ActionDialog
      title={title(count)}
      submitLabel={submitLabel}
      texts={texts(count)}
      calls={[callOf(first), ...others.map(callOf)]}
      names={policies.map(({ name }) => name)}
      onPartialSuccess={(indexes) => selection.toggle(...indexes.map((index) => policies[index]!.id))}
      queryKind={KIND}
      to={scope.path('lifecycle-policies')}
      search={{ ids: '' }}
      disabledReason={policies.length === 0 ? 'Select policies in the list first' : null}
    >
      <p>{text}</p>
      <ul>
        {policies.map(({ id, name }) => (
          <li key={id}>
            <bdi>{name}</bdi>
          </li>
        ))}
      </ul>
    </ActionDialog>
  );
}
