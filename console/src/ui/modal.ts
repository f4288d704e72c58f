import { useLayoutEffect, useRef } from 'react';
import type { RefObject } from 'react';

/**
 * Shows a dialog as a modal one for as long as it is mounted. `first` selects the control that gets the focus.
 *
 * Chromium closes a dialog at the second Escape without another input in between, whatever the page answers. Such a dialog is
 * shown again, with the focus where it was.
 */
export function useModal(first?: string): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    let focused: HTMLElement | null = null;
    const show = (control: HTMLElement | null) => {
      element.showModal();
      control?.focus();
    };
    const showAgain = () => show(focused);
    element.addEventListener('focusin', ({ target }) => {
      focused = target as HTMLElement;
    });
    element.addEventListener('close', showAgain);
    show(first === undefined ? null : element.querySelector(first));
    return () => {
      element.removeEventListener('close', showAgain);
      // Before the element leaves the document, so that the browser returns the focus.
      element.close();
    };
  }, []);
  return dialog;
}
