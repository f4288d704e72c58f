import { useBlocker } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useReadOnlyReason } from '../../api/session.ts';
import { ByCode, type Call } from '../by-code.tsx';
import { DeletedNotice } from '../deleted-elsewhere.tsx';
import { Dialog, useClose } from '../dialog.tsx';
import { useTitle } from '../title.ts';
import type { Form } from './use-form.ts';

interface FormDialogProps {
  readonly title: string;
  readonly form: Form;
  readonly submitLabel: string;
  /** The requests for the panel "The same by code", if they are several or do not have the body of the form. */
  readonly calls?: readonly Call[];
  readonly isDangerous?: boolean;
  /** An edit that can be sent without a change. */
  readonly canBeUnchanged?: boolean;
  /** The response has a secret that is shown only once, so the dialog asks before it is closed during the request. */
  readonly isForSecret?: boolean;
  /** Why the form cannot be sent yet. */
  readonly disabledReason?: string | null | undefined;
  readonly children: ReactNode;
}

/** A form in a dialog with a URL: warns before it discards what was typed, shows failures, and the same request as code. */
export function FormDialog(props: FormDialogProps) {
  const { title, form, children } = props;
  const { call } = form;
  const close = useClose();
  const readOnly = useReadOnlyReason();
  const isUnchanged = form.isEdit && !props.canBeUnchanged && !form.isDirty && !form.isSubmitting;
  const disabledReason = readOnly ?? props.disabledReason ?? (isUnchanged ? 'Nothing has changed' : null);
  useTitle(title);
  const question = questionBeforeClose(props);
  useBlocker({
    shouldBlockFn: () => question !== null && !confirm(question),
    enableBeforeUnload: question !== null,
    disabled: question === null,
  });
  return (
    <Dialog title={title} close={close} className="side-panel">
      <form
        className="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (disabledReason || form.isSubmitting) return;
          const incomplete = incompleteControl(event.currentTarget);
          if (incomplete) report(incomplete);
          else void form.submit();
        }}
      >
        {!form.isSubmitting && <DeletedNotice />}
        {form.failure && <Failure {...form.failure} />}
        {children}
        <div className="dialog-actions">
          {disabledReason && <p className="muted">{disabledReason}</p>}
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            className={`button primary ${props.isDangerous ? 'danger' : ''}`}
            aria-disabled={Boolean(disabledReason) || form.isSubmitting}
          >
            {form.isSubmitting && <span className="spinner" aria-hidden="true" />} {props.submitLabel}
          </button>
        </div>
        <ByCode calls={props.calls ?? [{ ...call, body: call.method === 'DELETE' ? undefined : form.body }]} />
      </form>
    </Dialog>
  );
}

/** Null if closing the dialog loses nothing. */
function questionBeforeClose({ form, isForSecret }: FormDialogProps): string | null {
  if (form.isDirty) return 'Discard what you typed?';
  return isForSecret && form.isSubmitting ? 'Close before the secret is shown?' : null;
}

/** A control whose text is not a value yet, such as a date without a time or the number `1e`: to a page it looks empty. */
function incompleteControl({ elements }: HTMLFormElement): HTMLInputElement | undefined {
  return [...elements].find((element): element is HTMLInputElement =>
    Boolean(element instanceof HTMLInputElement && element.validity.badInput),
  );
}

/** Shows the message of the browser at the control, which it can only focus outside of closed details. */
function report(control: HTMLInputElement): void {
  const details = control.closest('details');
  if (details) details.open = true;
  control.reportValidity();
}

function Failure({ message, details }: { message: string; details: readonly string[] }) {
  return (
    <div className="notice bad" role="alert" tabIndex={-1}>
      {message}
      {details.length > 0 && (
        <ul>
          {details.map((detail) => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The typed name that a deletion requires, and whether it is right. */
export function useTypedConfirmation(name: string): { isConfirmed: boolean; field: ReactNode } {
  const [typed, setTyped] = useState('');
  const field = (
    <div className="field">
      <label htmlFor="confirmation">
        Type{' '}
        <code>
          <bdi>{name}</bdi>
        </code>{' '}
        to confirm
      </label>
      <input
        id="confirmation"
        autoComplete="off"
        spellCheck={false}
        dir="auto"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
    </div>
  );
  return { isConfirmed: asShown(typed) === asShown(name), field };
}

/**
 * A browser shows several spaces as one, none at the ends, and no format characters. Letters with accents look the same
 * whether they are one character or two, and a keyboard types only one of these.
 */
function asShown(text: string): string {
  return text
    .normalize()
    .replace(/\p{Cf}/gu, '')
    .replace(/\s+/g, ' ')
    .trim();
}
