import { request } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { pathOf } from '../ui/by-code.tsx';
import type { Call } from '../ui/by-code.tsx';
import type { Values } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { KIND } from './data.ts';

interface ChangeText {
  /** While the task runs: `Updating pool web`. */
  readonly busy: string;
  /** When it is finished: `Updated pool web`. */
  readonly done: string;
  /** The tab of the load balancer to open then. */
  readonly tab?: 'listeners' | 'pools';
}

/** Sends a change of a load balancer or its parts, follows its task and opens the page of the load balancer. */
export function useChange(balancerId: string) {
  const scope = useScope();
  const leave = useLeave();
  return async (call: Omit<Call, 'body'>, body: Values, text: ChangeText): Promise<void> => {
    const { tasks } = await request<{ tasks: string[] }>(call.method, pathOf(call), body);
    const link = { to: scope.path('load-balancers', balancerId), text: 'Open' };
    if (tasks.length > 0) trackTasks(tasks, scope, { busy: text.busy, done: text.done, link });
    void queryClient.invalidateQueries({ queryKey: [KIND] });
    await leave({ to: link.to, search: { tab: text.tab } as never });
  };
}
