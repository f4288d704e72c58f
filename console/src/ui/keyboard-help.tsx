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

/** What each key does. */
export default function KeyboardHelp({ close }: { close: () => void }) {
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
