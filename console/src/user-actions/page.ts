import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const userActions: Page = {
  title: 'User actions',
  path: 'user-actions',
  section: 'Account',
  routes: [
    {
      path: 'user-actions',
      component: lazy(() => import('./list.tsx'), 'UserActions'),
      children: [
        { path: 'subscribe', component: lazy(() => import('./subscribe.tsx'), 'Subscribe') },
        { path: 'unsubscribe', component: lazy(() => import('./unsubscribe.tsx'), 'Unsubscribe') },
        { path: '$id', component: lazy(() => import('./payload.tsx'), 'Payload') },
      ],
    },
  ],
};
