import { useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { focusContent } from './focus-content.ts';
import { useShownTitle } from './title.ts';

/** A title that is replaced within this time is not announced, and a dialog has taken the focus. */
const SETTLE_MS = 200;

/** Announces the title of each page and dialog, and moves the focus to the content unless a dialog has it. */
export function RouteAnnouncer() {
  const title = useShownTitle();
  const [text, setText] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setText(title), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [title]);
  useFocusOfPage();
  return (
    <div className="visually-hidden" role="status">
      {text}
    </div>
  );
}

/** The link that was followed disappears with its page, which stays until the next one is loaded. */
function useFocusOfPage(): void {
  const pathname = useRouterState({ select: ({ isLoading, location }) => (isLoading ? null : location.pathname) });
  const last = useRef<string>(null);
  useEffect(() => {
    if (pathname === null || pathname === last.current) return;
    if (last.current !== null) setTimeout(focusContentIfLost, SETTLE_MS);
    last.current = pathname;
  }, [pathname]);
}

/** Also on the button that gets the focus back when the link of its popover, such as the navigation of a narrow window, was followed. */
function focusContentIfLost(): void {
  const active = document.activeElement;
  const isLost = active === null || active === document.body || active.closest('nav, [popovertarget]') !== null;
  if (isLost) focusContent();
}
