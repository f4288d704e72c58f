import type { ReactNode } from 'react';
import { request } from '../../api/client.ts';
import { queryClient } from '../../api/query-client.ts';
import { useScope } from '../scope.tsx';
import { trackTasks } from '../task-tracking.ts';
import type { Call } from '../by-code.tsx';
import { pathOf } from '../by-code.tsx';
import { showToast } from '../toasts.tsx';
import { FormDialog, useTypedConfirmation } from './form-dialog.tsx';
import { useForm } from './use-form.ts';
import { useLeave } from './use-leave.ts';

interface DeleteDialogProps {
  /** What is deleted, such as `file share`. */
  readonly kind: string;
  readonly name: string;
  readonly call: Omit<Call, 'body'>;
  /** First part of the keys of the queries that the deletion changes. */
  readonly queryKind: string;
  /** The list, which opens after the deletion. */
  readonly listPath: string;
  /** Parameters of the list, such as its tab. */
  readonly listSearch?: Readonly<Record<string, string>>;
  /** What is lost. */
  readonly children: ReactNode;
  readonly segments?: number;
  /** Why this session may not delete it. */
  readonly disabledReason?: string | null;
  /** For actions that end a resource under another name, such as revoking a token. */
  readonly verbs?: { readonly title: string; readonly busy: string; readonly done: string };
}

const DELETE = { title: 'Delete', busy: 'Deleting', done: 'Deleted' };

/** Deletes after the name was typed, follows the task, and opens the list. */
export function DeleteDialog(props: DeleteDialogProps) {
  const { kind, name, call, queryKind, listPath, listSearch, children, segments, verbs = DELETE } = props;
  const scope = useScope();
  const leave = useLeave();
  const { isConfirmed, field } = useTypedConfirmation(name);
  const done = `${verbs.done} ${kind} ${name}`;
  const form = useForm({
    schema: {},
    initial: {},
    send: async () => {
      const response = await request<{ tasks?: string[] } | undefined>('DELETE', pathOf(call));
      const tasks = response?.tasks ?? [];
      if (tasks.length > 0) trackTasks(tasks, scope, { busy: `${verbs.busy} ${kind} ${name}`, done });
      else showToast({ tone: 'ok', text: done });
      void queryClient.invalidateQueries({ queryKey: [queryKind] });
      await leave({ to: listPath, search: (listSearch ?? {}) as never });
    },
  });
  return (
    <FormDialog
      title={`${verbs.title} ${kind} ${name}`}
      form={form}
      submitLabel={`${verbs.title} ${kind}`}
      isDangerous
      call={call}
      disabledReason={props.disabledReason ?? (isConfirmed ? null : 'Type the name to confirm')}
      {...(segments === undefined ? {} : { segments })}
    >
      <div className="notice warn">{children}</div>
      {field}
    </FormDialog>
  );
}
