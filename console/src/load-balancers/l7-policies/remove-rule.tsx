import { useMutation } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import { messageOf } from '../../api/errors.ts';
import { queryClient } from '../../api/query-client.ts';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { trackTasks } from '../../ui/task-tracking.ts';
import { showToast } from '../../ui/toasts.tsx';
import { KIND } from '../data.ts';
import type { L7Policy, L7Rule } from '../data.ts';
import { ruleText } from './policy.ts';

interface RemoveRuleProps {
  readonly policy: L7Policy;
  readonly rule: L7Rule;
  readonly disabledReason: string | null;
}

export function RemoveRule({ policy, rule, disabledReason }: RemoveRuleProps) {
  const scope = useScope();
  const text = ruleText(rule);
  const removal = useMutation({
    mutationFn: () =>
      unwrap(
        api.DELETE('/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}/rules/{l7rule_id}', {
          params: { path: { ...scopeParams(scope), l7policy_id: policy.id, l7rule_id: rule.id } },
        }),
      ),
    onSuccess: ({ tasks }) =>
      trackTasks(tasks, { busy: `Removing the rule ${text}`, done: `Removed the rule ${text}` }),
    onError: (error) => showToast({ tone: 'bad', text: `${text}: ${messageOf(error)}` }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: [KIND] }),
  });
  return (
    <button
      type="button"
      className="button quiet small danger"
      disabled={removal.isPending || disabledReason !== null}
      title={disabledReason ?? undefined}
      onClick={() => removal.mutate()}
    >
      Remove <span className="visually-hidden">the rule {text}</span>
    </button>
  );
}
