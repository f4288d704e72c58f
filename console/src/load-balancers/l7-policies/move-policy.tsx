import { useMutation } from '@tanstack/react-query';
import { request } from '../../api/client.ts';
import { messageOf } from '../../api/errors.ts';
import { queryClient } from '../../api/query-client.ts';
import { pathOf } from '../../ui/by-code.tsx';
import { Icon } from '../../ui/icons.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { trackTasks } from '../../ui/task-tracking.ts';
import { showToast } from '../../ui/toasts.tsx';
import { KIND } from '../data.ts';
import type { L7Policy } from '../data.ts';
import { actionOf, policyCall, policyTitle } from './policy.ts';

interface MovePolicyProps {
  readonly policy: L7Policy;
  readonly by: -1 | 1;
  readonly disabledReason: string | null;
}

/** Moves a policy one place up or down; those between move as well. */
export function MovePolicy({ policy, by, disabledReason }: MovePolicyProps) {
  const call = policyCall(scopeParams(useScope()), policy.id);
  const position = policy.position + by;
  const move = useMutation({
    mutationFn: () =>
      request<{ tasks: string[] }>(call.method, pathOf(call), { ...actionOf(policy as never), position }),
    onSuccess: ({ tasks }) =>
      trackTasks(tasks, {
        busy: `Moving ${policyTitle(policy)}`,
        done: `Moved ${policyTitle(policy)} to position ${position}`,
      }),
    onError: (error) => showToast({ tone: 'bad', text: `${policyTitle(policy)}: ${messageOf(error)}` }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: [KIND] }),
  });
  return (
    <button
      type="button"
      className="button quiet small icon"
      aria-label={`Move ${policyTitle(policy)} ${by < 0 ? 'up' : 'down'}`}
      aria-disabled={disabledReason !== null || move.isPending}
      title={disabledReason ?? undefined}
      onClick={() => {
        if (disabledReason === null && !move.isPending) move.mutate();
      }}
    >
      <Icon name={by < 0 ? 'up' : 'down'} />
    </button>
  );
}
