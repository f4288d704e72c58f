import { request } from '../../api/client.ts';
import { queryClient } from '../../api/query-client.ts';
import { pathOf } from '../by-code.tsx';
import { useScope } from '../scope.tsx';
import { trackTasks } from '../task-tracking.ts';
import { showToast, type ToastLink } from '../toasts.tsx';
import { type Form, type FormOptions, useForm, type Values } from './use-form.ts';
import { useLeave } from './use-leave.ts';

/** What follows a request that succeeded. */
export interface Sent {
  /** While its tasks run: `Creating volume data`. */
  readonly busy?: string;
  /** For the toast: `Created volume data`. */
  readonly done: string;
  readonly link?: ToastLink;
  /** The page that opens, and its parameters. */
  readonly to: string;
  readonly search?: Readonly<Record<string, string | undefined>>;
}

export interface RequestFormOptions<Response> extends Omit<FormOptions, 'send'> {
  /** First part of the keys of the queries that the request changes. */
  readonly queryKind: string;
  readonly sent: (body: Values, response: Response) => Sent;
}

/** A form that sends its call, follows the tasks of the response, and opens the page that shows the change. */
export function useRequestForm<Response>({ queryKind, sent, ...options }: RequestFormOptions<Response>): Form {
  const scope = useScope();
  const leave = useLeave();
  const { call } = options;
  return useForm({
    ...options,
    send: async (body) => {
      const response = await request<Response>(call.method, pathOf(call), call.method === 'DELETE' ? undefined : body);
      const { busy, done, link, to, search } = sent(body, response);
      const { tasks = [] } = (response ?? {}) as { tasks?: string[] };
      if (tasks.length > 0) trackTasks(tasks, scope, { busy: busy ?? done, done, link });
      else showToast({ tone: 'ok', text: done, link });
      void queryClient.invalidateQueries({ queryKey: [queryKind] });
      await leave({ to, search: (search ?? {}) as never });
    },
  });
}
