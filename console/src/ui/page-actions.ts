import { useEffect } from 'react';

interface PageAction {
  readonly title: string;
  readonly to: string;
}

let actions: readonly PageAction[] = [];

/** Offers actions of the page in the palette, for as long as the page is shown. */
export function usePageActions(offered: readonly PageAction[]): void {
  const key = JSON.stringify(offered);
  useEffect(() => {
    actions = JSON.parse(key) as PageAction[];
    return () => {
      actions = [];
    };
  }, [key]);
}

/** What the shown page offers; read when the palette opens. */
export function currentPageActions(): readonly PageAction[] {
  return actions;
}
