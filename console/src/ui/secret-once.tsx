import { useBlocker } from '@tanstack/react-router';
import { type ReactNode, useRef } from 'react';
import { CodeBlock } from './copy.tsx';
import { Dialog, useClose } from './dialog.tsx';

interface SecretOnceProps {
  readonly title: string;
  /** What it is, for the copy button: `secret`. */
  readonly what: string;
  readonly secret: string;
  /** How to use it. A function gets what reports a copy of a text that contains the secret. */
  readonly children?: ReactNode | ((keep: () => void) => ReactNode);
}

/** A secret that the server returns only once, in the place of the form that created it. Asks before it is lost. */
export function SecretOnce({ title, what, secret, children }: SecretOnceProps) {
  const close = useClose();
  const isKept = useRef(false);
  const keep = () => {
    isKept.current = true;
  };
  const mayClose = () => isKept.current || confirm(`Close without a copy of the ${what}?`);
  useBlocker({ shouldBlockFn: () => !mayClose(), enableBeforeUnload: () => !isKept.current });
  const closeKept = () => {
    keep();
    close();
  };
  return (
    // On a busy machine the dialog can be closed before the blocker has started.
    <Dialog title={title} close={() => mayClose() && closeKept()} className="side-panel">
      <div className="form">
        <p className="notice warn">Copy the {what} now. It is shown only once and cannot be read again.</p>
        <CodeBlock text={secret} what={what} onCopied={keep} />
        {typeof children === 'function' ? children(keep) : children}
        <div className="dialog-actions">
          <button type="button" className="button primary" onClick={closeKept}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  );
}
