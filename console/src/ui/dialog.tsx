import { useLocation, useNavigate } from '@tanstack/react-router';
import { useId } from 'react';
import type { ReactNode } from 'react';
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

/** Path of the page below a dialog: without the last `segments` of the URL. */
export function useClose(segments = 1): () => void {
  const navigate = useNavigate();
  const { pathname } = useLocation();
  // The router's paths do not contain the base path; those of the location do.
  const parent = pathname
    .replace(/^\/console/, '')
    .split('/')
    .slice(0, -segments)
    .join('/');
  return () => void navigate({ to: parent, search: (search: object) => search, resetScroll: false } as never);
}

/** A dialog that is a route: closing it opens the page below. `segments`: how many of the URL belong to it. */
export function DialogRoute(props: Omit<DialogProps, 'close'> & { segments?: number }) {
  const close = useClose(props.segments);
  useTitle(props.title);
  return <Dialog {...props} close={close} />;
}
