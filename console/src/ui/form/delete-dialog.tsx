import type { ReactNode } from 'react';
import type { Call } from '../by-code.tsx';
import { FormDialog, useTypedConfirmation } from './form-dialog.tsx';
import { useRequestForm } from './use-request-form.ts';

interface DeleteDialogProps {
  /** What is deleted, such as `file share`. */
  readonly kind: string;
  readonly name: string;
  readonly call: Omit<Call, 'body' | 'method'>;
  /** First part of the keys of the queries that the deletion changes. */
  readonly queryKind: string;
  /** The list, which opens after the deletion. */
  readonly listPath: string;
  /** Parameters of the list, such as its tab. */
  readonly listSearch?: Readonly<Record<string, string>>;
  /** What is lost. */
  readonly children: ReactNode;
  /** Why this session may not delete it. */
  readonly disabledReason?: string | null;
  /** For actions that end a resource under another name, such as revoking a token. */
  readonly verbs?: { readonly title: string; readonly busy: string; readonly done: string };
}

const DELETE = { title: 'Delete', busy: 'Deleting', done: 'Deleted' };

/** Deletes after the name was typed, follows the task, and opens the list. */
export function DeleteDialog(props: DeleteDialogProps) {
  const { kind, name, call, queryKind, listPath, listSearch, children, verbs = DELETE } = props;
  const { isConfirmed, field } = useTypedConfirmation(name);
  const form = useRequestForm({
    call: { ...call, method: 'DELETE' },
    schema: {},
    initial: {},
    queryKind,
    sent: () => ({
      busy: `${verbs.busy} ${kind} ${name}`,
      done: `${verbs.done} ${kind} ${name}`,
      to: listPath,
      ...(listSearch && { search: listSearch }),
    }),
  });
  return (
    <FormDialog
      title={`${verbs.title} ${kind} ${name}`}
      form={form}
      submitLabel={`${verbs.title} ${kind}`}
      isDangerous
      disabledReason={props.disabledReason ?? (isConfirmed ? null : 'Type the name to confirm')}
    >
      <div className="notice warn">{children}</div>
      {field}
    </FormDialog>
  );
}
