import { useLocation } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';

/** Announces the title after each navigation, and moves the focus to the content unless a dialog has it. */
export function RouteAnnouncer() {
  const { pathname } = useLocation();
  const [text, setText] = useState('');
  const isFirst = useRef(true);
  useEffect(() => {
    // Titles are set by the pages, which may still be loading.
    const timer = setTimeout(() => {
      setText(document.title);
      const active = document.activeElement;
      const isLost = active === null || active === document.body || active.closest('nav') !== null;
      if (!isFirst.current && isLost) document.getElementById('main')?.focus({ preventScroll: true });
      isFirst.current = false;
    }, 200);
    return () => clearTimeout(timer);
  }, [pathname]);
  return (
    <div className="visually-hidden" role="status">
      {text}
    </div>
  );
}
