import { useEffect } from 'react';

/** Names the page in the tab and for screen readers. */
export function useTitle(title: string): void {
  useEffect(() => {
    const before = document.title;
    document.title = `${title} · Cloudyard`;
    return () => {
      document.title = before;
    };
  }, [title]);
}
