import { useNavigate, useParentMatches } from '@tanstack/react-router';
import { type ReactNode, useId } from 'react';
import { Icon } from './icons.tsx';
import { useModal } from './modal.ts';
import { useTitle } from './title.ts';

interface DialogProps {
  readonly title: string;
  readonly close: () => void;
  readonly className?: string;
  readonly children: ReactNode;
}

/** Rather than the close button. */
const FIRST_FIELD = '.dialog-body :is(input, select, textarea):not(:disabled)';

/** A modal dialog. Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, close, className, children }: DialogProps) {
  const dialog = useModal({ first: FIRST_FIELD });
  const titleId = useId();
  return (
    <dialog
      ref={dialog}
      className={className}
      aria-labelledby={titleId}
      onCancel={(event) => {
        // The owner decides: a form with unsaved text asks first.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        close();
      }}
    >
      <header>
        <h2 id={titleId}>{title}</h2>
        <button type="button" className="button quiet icon" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}

/** Opens the page below the dialog, which is the parent of its route. */
export function useClose(): () => void {
  const navigate = useNavigate();
  const parent = useParentMatches({ select: (matches) => matches.at(-1)!.pathname });
  return () => void navigate({ to: parent, search: (search: object) => search, resetScroll: false } as never);
}

/** A dialog that is a route: closing it opens the page below. */
export function DialogRoute(props: Omit<DialogProps, 'close'>) {
  const close = useClose();
  useTitle(props.title);
  return <Dialog {...props} close={close} />;
}
