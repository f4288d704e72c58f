import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const quotaAudit: Page = {
  title: 'Quota audit',
  path: 'quota-audit',
  section: 'Operator',
  operatorOnly: true,
  routes: [{ path: 'quota-audit', component: lazy(() => import('./quota-audit.tsx'), 'QuotaAudit') }],
};
