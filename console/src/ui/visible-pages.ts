import { useSession } from '../api/session.ts';
import { pages } from '../pages.ts';
import type { Page } from './page.ts';

/** The pages that the session may open. */
export function useVisiblePages(): readonly Page[] {
  const session = useSession();
  return pages.filter(
    (page) => (!page.operatorOnly || session.is_operator) && (!page.developmentOnly || session.is_development),
  );
}
