import { QueryObserver } from '@tanstack/react-query';
import { ApiError, messageOf } from '../api/errors.ts';
import { queryClient } from '../api/query-client.ts';
import { taskQuery } from '../tasks/data.ts';
import type { Scope } from './scope.tsx';
import { isGone } from './states.tsx';
import { showToast, type ToastLink } from './toasts.tsx';

interface TrackedText {
  /** While the tasks run: `Creating file share web`. */
  readonly busy: string;
  /** When all are finished: `Created file share web`. */
  readonly done: string;
  readonly link?: ToastLink | undefined;
}

/** Follows tasks of the project and region to their end in a toast. That of a failure links its task. */
export function trackTasks(ids: readonly string[], scope: Scope, text: TrackedText): void {
  const { link } = text;
  const toast = showToast({ tone: 'busy', text: text.busy, link });
  void (async () => {
    try {
      for (const id of ids) {
        const error = await endOf(id);
        if (error === null) continue;
        const failed = { to: scope.path('tasks', id), text: 'Open the task' };
        showToast({ tone: 'bad', text: `${text.busy} failed: ${error}`, link: failed }, toast);
        return;
      }
      showToast({ tone: 'ok', text: text.done, link }, toast);
    } catch (error) {
      showToast({ tone: 'bad', text: `${text.busy}: ${messageOf(error)}`, link }, toast);
    } finally {
      void queryClient.invalidateQueries();
    }
  })();
}

/** How often a task is read. Events refresh it sooner, but only those of the project that is open. */
const READ_MS = 5000;

/**
 * Resolves at the end of a task with its error; null when it finished. A read that fails says nothing about the task, which is
 * read again, after a sign-in if the session has ended. No request waits for the end: each would take one of the six connections
 * that a browser opens to a server.
 */
function endOf(id: string): Promise<string | null> {
  const observer = new QueryObserver(queryClient, {
    ...taskQuery(id),
    refetchInterval: ({ state: { error } }) => !(error instanceof ApiError && error.status === 401) && READ_MS,
  });
  return new Promise((resolve, reject) => {
    let unsubscribe = () => {};
    const check = ({ data, error }: ReturnType<typeof observer.getCurrentResult>) => {
      const hasEnded = data?.state === 'FINISHED' || data?.state === 'ERROR';
      if (!hasEnded && !isGone(error)) return;
      unsubscribe();
      if (!hasEnded) reject(error!);
      else resolve(data.state === 'FINISHED' ? null : (data.error ?? 'the task failed'));
    };
    unsubscribe = observer.subscribe(check);
    // A task that is in the cache: the subscription reports changes only, and the first one before it returns.
    check(observer.getCurrentResult());
  });
}
