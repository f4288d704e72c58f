/**
 * When the focused control disappears, such as the button that cleared a filter or dismissed a toast, the last control of the
 * page or of the dialog that had the focus before gets it, or the content. The browser would reset it to the document.
 *
 * Imported by each page for its effect: the initial load is at its budget.
 */
import { focusContent } from './focus-content.ts';

const KEPT = 5;
const CONTENT = 'main, dialog';

let last: HTMLElement | null = null;
let earlier: HTMLElement[] = [];

document.addEventListener('focusin', ({ target }) => {
  last = target as HTMLElement;
  if (last.closest('.toasts') || !last.closest(CONTENT)) return;
  earlier = [...earlier.filter((each) => each.isConnected && each !== target), last].slice(-KEPT);
});

// After a click beside the control. That of a control that is being removed is not connected then.
document.addEventListener('focusout', ({ target }) =>
  queueMicrotask(() => {
    if (target === last && last?.isConnected && document.activeElement === document.body) last = null;
  }),
);

const observer = new MutationObserver(() => {
  if (last === null || last.isConnected || document.activeElement !== document.body) return;
  last = null;
  // What is below a dialog does not take the focus.
  const isFocused = earlier.toReversed().some((each) => {
    each.focus({ preventScroll: true });
    return document.activeElement === each;
  });
  if (!isFocused) focusContent();
});
observer.observe(document.body, { childList: true, subtree: true });
