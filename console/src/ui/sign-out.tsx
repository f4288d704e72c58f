import { messageOf } from '../api/errors.ts';
import { signOut } from '../api/session.ts';
import { showToast } from './toasts.tsx';

export function SignOutButton({ className }: { className?: string }) {
  return (
    <button
      type="button"
      className={className}
      onClick={() => void signOut().catch((error: unknown) => showToast({ tone: 'bad', text: messageOf(error) }))}
    >
      Sign out
    </button>
  );
}
