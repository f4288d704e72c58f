import type { ReactNode } from 'react';
import { request } from '../../api/client.ts';
import { ApiError, messageOf } from '../../api/errors.ts';
import { queryClient } from '../../api/query-client.ts';
import { type Call, pathOf } from '../by-code.tsx';
import { useScope } from '../scope.tsx';
import { trackTasks } from '../task-tracking.ts';
import { showToast } from '../toasts.tsx';
import { FormDialog } from './form-dialog.tsx';
import { useForm } from './use-form.ts';
import { useLeave } from './use-leave.ts';

interface ActionDialogProps {
  readonly title: string;
  readonly submitLabel: string;
  /** The requests that the action sends, at least one. */
  readonly calls: readonly [Call, ...Call[]];
  /** The object of each request, for failures of some of several. */
  readonly names?: readonly string[];
  /**
   * Called with the indexes of the requests that succeeded when others failed. Another attempt must not repeat them, because they
   * may not be idempotent: the caller takes them out of `calls`.
   */
  readonly onPartialSuccess?: (indexes: readonly number[]) => void;
  /** For the toast. `busy` is shown while tasks run. */
  readonly texts: { readonly busy?: string; readonly done: string };
  /** First part of the keys of the queries that the action changes. */
  readonly queryKind: string;
  /** The page that opens afterwards, and changes of its parameters. */
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly isDangerous?: boolean;
  readonly disabledReason?: string | null;
  readonly children?: ReactNode;
}

/** An action without fields: says what it does, shows the same by code, sends its requests and follows their tasks. */
export function ActionDialog(props: ActionDialogProps) {
  const { calls, texts, names = [] } = props;
  const leave = useLeave();
  const scope = useScope();
  const form = useForm({
    call: calls[0],
    schema: {},
    initial: {},
    send: async () => {
      const results = await Promise.allSettled(
        calls.map((call) => request<{ tasks?: string[] } | undefined>(call.method, pathOf(call), call.body)),
      );
      const nameOf = (index: number) => names[index] ?? String(index + 1);
      const succeeded = [...calls.keys()].filter((index) => results[index]!.status === 'fulfilled');
      const isComplete = succeeded.length === calls.length;
      void queryClient.invalidateQueries({ queryKey: [props.queryKind] });
      const tasks = results.flatMap((result) => (result.status === 'fulfilled' ? (result.value?.tasks ?? []) : []));
      if (tasks.length > 0) {
        const link = { to: props.to, text: 'Open' };
        const some = `${succeeded.length} of ${calls.length} succeeded: ${succeeded.map(nameOf).join(', ')}`;
        const done = isComplete ? texts.done : some;
        trackTasks(tasks, scope, { busy: texts.busy ?? texts.done, done, link });
      }
      if (!isComplete && succeeded.length > 0) props.onPartialSuccess?.(succeeded);
      throwFailures(results, nameOf);
      if (tasks.length === 0) showToast({ tone: 'ok', text: texts.done });
      const search = (current: object) => ({ ...current, ...props.search });
      await leave({ to: props.to, search: search as never });
    },
  });
  return (
    <FormDialog
      title={props.title}
      form={form}
      submitLabel={props.submitLabel}
      calls={calls}
      isDangerous={props.isDangerous ?? false}
      disabledReason={props.disabledReason}
    >
      {props.children}
    </FormDialog>
  );
}

/**
 * One failure does not stop the other requests.
 * @throws the failure, or all of them in one message; of an expired session only one, which the sign-in dialog handles
 */
function throwFailures(results: readonly PromiseSettledResult<unknown>[], nameOf: (index: number) => string): void {
  const failed = results.flatMap((result, index) =>
    result.status === 'rejected' ? [{ reason: result.reason as unknown, name: nameOf(index) }] : [],
  );
  if (failed.length === 0) return;
  const expired = failed.find(({ reason }) => reason instanceof ApiError && reason.status === 401);
  if (results.length === 1 || expired) throw (expired ?? failed[0]!).reason;
  const messages = failed.map(({ reason, name }) => `${name}: ${messageOf(reason)}`);
  throw new Error(`${failed.length} of ${results.length} failed. ${messages.join('; ')}`);
}
