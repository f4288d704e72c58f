import { useEffect, useRef } from 'react';

/** Keys of the whole console. Letters do nothing while the user types in a field. */
export function useShortcuts(actions: { openPalette: () => void; openHelp: () => void }): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    function onKey(event: KeyboardEvent): void {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        latest.current.openPalette();
        return;
      }
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        isTyping(event.target) ||
        document.querySelector('dialog[open]')
      ) {
        return;
      }
      if (event.key === '?') latest.current.openHelp();
      if (event.key === '/') press(event, '.list-tools input[type=search]', (field) => field.focus());
      if (event.key === 'n') press(event, '[data-shortcut=create]', (link) => link.click());
    }
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

function press(event: KeyboardEvent, selector: string, act: (element: HTMLElement) => void): void {
  const element = document.querySelector<HTMLElement>(selector);
  if (!element) return;
  event.preventDefault();
  act(element);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
}
