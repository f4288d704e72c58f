import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const audit: Page = {
  title: 'Audit log',
  path: 'audit',
  section: 'Account',
  adminOnly: true,
  routes: [
    { path: 'audit', component: lazy(() => import('./list.tsx'), 'AuditLog') },
    { path: 'audit/$id', component: lazy(() => import('./detail.tsx'), 'AuditEntryDetail') },
  ],
};
