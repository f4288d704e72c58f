import { useSession } from '../api/session.ts';
import { pages } from '../pages.ts';
import type { Page } from './page.ts';

/** The pages that the session may open. */
export function useVisiblePages(): readonly Page[] {
  const session = useSession();
  const isAdmin = session.role === 'admin';
  // A token that is limited to projects calls no operation of the operator.
  const isOperator = session.is_operator && isAdmin && session.project_ids === null;
  return pages.filter(
    (page) =>
      (!page.adminOnly || isAdmin) &&
      (!page.operatorOnly || isOperator) &&
      (!page.developmentOnly || session.is_development),
  );
}
