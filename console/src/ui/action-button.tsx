import type { ReactNode } from 'react';

interface ActionButtonProps {
  readonly children: ReactNode;
  readonly onClick?: () => void;
  readonly className?: string | undefined;
  /** Why the action is not available; the button then says so. */
  readonly disabledReason?: string | null | undefined;
  readonly isDisabled?: boolean;
}

/**
 * A button that does nothing while it is disabled. It stays focusable: the browser takes the focus from a button with the
 * attribute `disabled`, also from the one that was just pressed.
 */
export function ActionButton({ children, onClick, className = '', disabledReason, isDisabled }: ActionButtonProps) {
  const isOff = isDisabled || Boolean(disabledReason);
  return (
    <button
      type="button"
      className={`button ${className}`}
      aria-disabled={isOff}
      title={disabledReason ?? undefined}
      onClick={isOff ? undefined : onClick}
    >
      {children}
      {disabledReason && <span className="visually-hidden">: {disabledReason}</span>}
    </button>
  );
}
