import { createContext, type ReactNode, useContext, useRef } from 'react';
import { DialogRoute } from './dialog.tsx';

/** What the open dialog is about, if it was deleted meanwhile, such as `schedule`. */
const Deleted = createContext<string | null>(null);

/** Dialogs below say that their resource was deleted elsewhere. `what` is null while it exists. */
export function DeletedElsewhere({ what, children }: { what: string | null; children: ReactNode }) {
  return <Deleted value={what}>{children}</Deleted>;
}

/** In a form whose resource was deleted by another client. The form keeps its text, which may be needed elsewhere. */
export function DeletedNotice() {
  const what = useContext(Deleted);
  if (what === null) return null;
  return (
    <div className="notice warn" role="alert">
      This {what} was deleted elsewhere. What you typed is kept until you close the dialog.
    </div>
  );
}

interface PartDialogProps<T> {
  /** Undefined if it does not exist. */
  readonly part: T | undefined;
  /** Such as `schedule`. */
  readonly what: string;
  readonly children: (part: T) => ReactNode;
}

/** A dialog of a part of a resource. It stays open with the last state of a part that is deleted elsewhere. */
export function PartDialog<T>({ part, what, children }: PartDialogProps<T>) {
  const last = useRef(part);
  if (part !== undefined) last.current = part;
  if (last.current === undefined) {
    return (
      <DialogRoute title={`The ${what} was not found`}>
        <p role="alert">It may have been deleted elsewhere.</p>
      </DialogRoute>
    );
  }
  return <DeletedElsewhere what={part === undefined ? what : null}>{children(last.current)}</DeletedElsewhere>;
}
