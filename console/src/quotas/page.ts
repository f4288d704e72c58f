import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const quotas: Page = {
  title: 'Quotas',
  path: 'quotas',
  section: 'Account',
  create: { title: 'Request higher limits', path: 'quotas/requests/new' },
  routes: [
    {
      path: 'quotas',
      component: lazy(() => import('./quotas.tsx'), 'Quotas'),
      children: [
        { path: 'threshold', component: lazy(() => import('./threshold.tsx'), 'EditThreshold') },
        { path: 'threshold/reset', component: lazy(() => import('./reset-threshold.tsx'), 'ResetThreshold') },
        { path: 'requests/new', component: lazy(() => import('./create-request.tsx'), 'CreateQuotaRequest') },
        {
          path: 'requests/$request/delete',
          component: lazy(() => import('./delete-request.tsx'), 'DeleteQuotaRequest'),
        },
        {
          path: 'requests/$request/approve',
          component: lazy(() => import('./decide-request.tsx'), 'ApproveQuotaRequest'),
        },
        {
          path: 'requests/$request/decline',
          component: lazy(() => import('./decide-request.tsx'), 'DeclineQuotaRequest'),
        },
      ],
    },
  ],
};
