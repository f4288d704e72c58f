import { api, unwrap } from '../api/client.ts';
import { messageOf } from '../api/errors.ts';
import { queryClient } from '../api/query-client.ts';
import { showToast } from './toasts.tsx';

interface TrackedText {
  /** While the tasks run: `Creating file share web`. */
  readonly busy: string;
  /** When all are finished: `Created file share web`. */
  readonly done: string;
  readonly link?: { readonly to: string; readonly text: string };
  /** Path of the page of a task, for the toast of a failure. */
  readonly taskPath?: (id: string) => string;
}

/** The longest wait of one request; if the task has not ended, another request follows. */
const WAIT_SECONDS = 20;

/** Follows tasks to their end in a toast. */
export function trackTasks(ids: readonly string[], text: TrackedText): void {
  const link = text.link ? { link: text.link } : {};
  const toast = showToast({ tone: 'busy', text: text.busy, ...link });
  void (async () => {
    try {
      for (const id of ids) {
        const error = await endOf(id);
        if (error === null) continue;
        const failed = text.taskPath ? { link: { to: text.taskPath(id), text: 'Open the task' } } : link;
        showToast({ tone: 'bad', text: `${text.busy} failed: ${error}`, ...failed }, toast);
        return;
      }
      showToast({ tone: 'ok', text: text.done, ...link }, toast);
    } catch (error) {
      showToast({ tone: 'bad', text: `${text.busy}: ${messageOf(error)}`, ...link }, toast);
    } finally {
      void queryClient.invalidateQueries();
    }
  })();
}

/** Waits for the end of a task. Returns its error; null when it finished. */
async function endOf(id: string): Promise<string | null> {
  for (;;) {
    const task = await queryClient.fetchQuery({
      queryKey: ['tasks', 'end', id],
      queryFn: () =>
        unwrap(
          api.GET('/cloud/v1/tasks/{task_id}', { params: { path: { task_id: id }, query: { wait: WAIT_SECONDS } } }),
        ),
      staleTime: 0,
      retry: 5,
    });
    if (task.state === 'FINISHED') return null;
    if (task.state === 'ERROR') return task.error ?? 'the task failed';
  }
}
