import { type RefObject, useLayoutEffect, useRef } from 'react';
import { createStore, useStore } from '../api/store.ts';

interface ModalOptions {
  /** Selects the control that gets the focus. */
  readonly first?: string;
  /** Stays above dialogs that open later, such as a form whose code was still being loaded. */
  readonly isTopmost?: boolean;
}

/** The dialogs that are shown, the one above the others last. Those below it are inert, like the page. */
const shown = createStore<readonly HTMLDialogElement[]>([]);

const shownWithout = (element: HTMLDialogElement) => shown.get().filter((each) => each !== element);

/** The dialog above the others; null if none is shown. */
export function useTopDialog(): HTMLDialogElement | null {
  return useStore(shown).at(-1) ?? null;
}

/** Shows the topmost dialog above the one that has just opened. */
let raiseTopmost = () => {};

/**
 * Shows a dialog as a modal one for as long as it is mounted.
 *
 * Chromium closes a dialog at the second Escape without another input in between, whatever the page answers. Such a dialog is
 * shown again, with the focus where it was.
 */
export function useModal({ first, isTopmost = false }: ModalOptions = {}): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    let focused: HTMLElement | null = null;
    const show = (control: HTMLElement | null) => {
      if (!element.open) {
        element.showModal();
        shown.set([...shownWithout(element), element]);
      }
      control?.focus();
    };
    const showAgain = () => show(focused);
    element.addEventListener('focusin', ({ target }) => {
      focused = target as HTMLElement;
    });
    element.addEventListener('close', showAgain);
    show(first === undefined ? null : element.querySelector(first));
    if (!isTopmost) raiseTopmost();
    else {
      raiseTopmost = () => {
        element.close();
        showAgain();
      };
    }
    return () => {
      if (isTopmost) raiseTopmost = () => {};
      element.removeEventListener('close', showAgain);
      // Before the element leaves the document, so that the browser returns the focus.
      element.close();
      shown.set(shownWithout(element));
    };
  }, []);
  return dialog;
}
