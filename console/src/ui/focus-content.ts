/** Moves the focus to the content of the page, so that the keyboard continues at its start. Does nothing below a dialog. */
export function focusContent(): void {
  document.getElementById('main')?.focus({ preventScroll: true });
}
