import { Link } from '@tanstack/react-router';
import { createPortal } from 'react-dom';
import { createStore, useStore } from '../api/store.ts';
import { Icon } from './icons.tsx';
import { useTopDialog } from './modal.ts';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'ok' | 'bad' | 'busy';
  /** What the toast is about. */
  readonly link?: ToastLink | undefined;
}

export interface ToastLink {
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly text: string;
}

const SHOWN_MS = 8000;
const MOST_SHOWN = 4;
const toasts = createStore<readonly Toast[]>([]);
let lastId = 0;

/** Shows a toast; `busy` ones stay until they are replaced. Returns its ID. */
export function showToast(toast: Omit<Toast, 'id'>, replaced?: number): number {
  const id = replaced ?? ++lastId;
  toasts.set([...withRoom(toasts.get().filter((each) => each.id !== id)), { ...toast, id }]);
  // Failures stay until they are read.
  if (toast.tone === 'ok') dismissLater(id);
  return id;
}

/** Not while somebody reads it: the pointer or the focus is on a toast. */
function dismissLater(id: number): void {
  const isRead = () => document.querySelector('.toast:is(:hover, :focus-within)');
  setTimeout(() => (isRead() ? dismissLater : dismissToast)(id), SHOWN_MS);
}

/** Makes room for the next toast: evicts the oldest one that is not a failure, and a failure only if all are failures. */
function withRoom(shown: readonly Toast[]): readonly Toast[] {
  if (shown.length < MOST_SHOWN) return shown;
  const evicted = shown.find(({ tone }) => tone !== 'bad') ?? shown[0];
  return shown.filter((each) => each !== evicted);
}

function dismissToast(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

/** In the dialog above the others, if there is one: what is outside of it is covered and inert. */
export function Toasts() {
  const dialog = useTopDialog();
  return dialog ? createPortal(<ToastList />, dialog) : <ToastList />;
}

function ToastList() {
  const shown = useStore(toasts);
  return (
    <section className="toasts" aria-label="Notifications" aria-live="polite">
      <div>
        {shown.map((toast) => (
          <div key={toast.id} className={`toast ${toast.tone}`}>
            {toast.tone === 'busy' && <span className="spinner" aria-hidden="true" />}
            <div>
              {toast.text}{' '}
              {toast.link && (
                <Link to={toast.link.to} search={(toast.link.search ?? {}) as never}>
                  {toast.link.text}
                </Link>
              )}
            </div>
            <button
              type="button"
              className="button quiet small icon"
              aria-label="Dismiss"
              onClick={() => dismissToast(toast.id)}
            >
              <Icon name="close" />
            </button>
          </div>
        ))}
      </div>
    </section>
  );
}
