import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';

type Navigate = ReturnType<typeof useNavigate>;

/**
 * Opens the page that follows a form once its request has succeeded. A form that was closed meanwhile opens nothing: the user
 * is elsewhere.
 */
export function useLeave(): (to: Parameters<Navigate>[0]) => Promise<void> {
  const navigate = useNavigate();
  const isOpen = useIsOpen();
  return async (to) => {
    if (isOpen()) await navigate(to);
  };
}

/** Whether the form is still on the page, at any later time. */
export function useIsOpen(): () => boolean {
  const isOpen = useRef(false);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  return () => isOpen.current;
}
