import { useManagesClients, useReadsWebhooks, useSession } from '../api/session.ts';
import { pages } from '../pages.ts';
import type { Page } from './page.ts';

/** The pages that the session may open. */
export function useVisiblePages(): readonly Page[] {
  const session = useSession();
  const isAdmin = session.role === 'admin';
  const readsWebhooks = useReadsWebhooks();
  const isOperator = useManagesClients();
  return pages.filter(
    (page) =>
      (!page.hasWebhooks || readsWebhooks) &&
      (!page.adminOnly || isAdmin) &&
      (!page.operatorOnly || isOperator) &&
      (!page.developmentOnly || session.is_development),
  );
}
