import { useManagesClients, useSession } from '../api/session.ts';
import { pages } from '../pages.ts';
import type { Page } from './page.ts';

/** The pages that the session may open. */
export function useVisiblePages(): readonly Page[] {
  const session = useSession();
  const isAdmin = session.role === 'admin';
  const isOperator = useManagesClients();
  return pages.filter(
    (page) =>
      (!page.adminOnly || isAdmin) &&
      (!page.operatorOnly || isOperator) &&
      (!page.developmentOnly || session.is_development),
  );
}
