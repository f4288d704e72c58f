import { useEffect, useRef } from 'react';
import { Dialog } from './dialog.tsx';

const KEYS = [
  ['Ctrl K or ⌘K', 'Go to a page, create a resource, run an action of the page'],
  ['/', 'Filter the list'],
  ['n', 'Create, on a list'],
  ['↑ ↓', 'Previous and next row of a list'],
  ['Enter', 'Open the row'],
  ['Escape', 'Close the dialog'],
  ['?', 'This help'],
] as const;

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

export function KeyboardHelp({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <table>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Action</th>
          </tr>
        </thead>
        <tbody>
          {KEYS.map(([key, action]) => (
            <tr key={key}>
              <td>
                <kbd>{key}</kbd>
              </td>
              <td className="wrap">{action}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
