import { useEffect, useRef } from 'react';
import { createStore, useStore } from '../api/store.ts';

/** The titles of the page and of the dialogs above it. The last one is shown. */
let titles: readonly { readonly text: string }[] = [];
/** The title of the tab. It stays while the data of the next page loads. */
const shown = createStore(document.title);

function show(next: typeof titles): void {
  titles = next;
  const last = titles.at(-1);
  if (!last) return;
  document.title = `${last.text} · Cloudyard`;
  shown.set(document.title);
}

/** Names the page or dialog in the tab and for screen readers, until it is unmounted. */
export function useTitle(title: string): void {
  const own = useRef({ text: title });
  useEffect(() => {
    const entry = own.current;
    show([...titles, entry]);
    return () => show(titles.filter((each) => each !== entry));
  }, []);
  useEffect(() => {
    own.current.text = title;
    show(titles);
  }, [title]);
}

export function useShownTitle(): string {
  return useStore(shown);
}
