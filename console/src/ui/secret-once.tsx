import type { ReactNode } from 'react';
import { CodeBlock } from './copy.tsx';
import { Dialog, useClose } from './dialog.tsx';

interface SecretOnceProps {
  readonly title: string;
  /** What it is, for the copy button: `secret`. */
  readonly what: string;
  readonly secret: string;
  /** How many segments of the URL belong to the dialog. */
  readonly segments?: number;
  /** How to use it. */
  readonly children?: ReactNode;
}

/** A secret that the server returns only once, in the place of the form that created it. */
export function SecretOnce({ title, what, secret, segments, children }: SecretOnceProps) {
  const close = useClose(segments);
  return (
    <Dialog title={title} close={close} className="side-panel">
      <div className="form">
        <p className="notice warn">Copy the {what} now. It is shown only once and cannot be read again.</p>
        <CodeBlock text={secret} what={what} />
        {children}
        <div className="dialog-actions">
          <button type="button" className="button primary" onClick={close}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  );
}
