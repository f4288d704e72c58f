import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const notifications: Page = {
  title: 'Notifications',
  path: 'notifications',
  section: 'Account',
  routes: [
    { path: 'notifications', component: lazy(() => import('./list.tsx'), 'NotificationList') },
    { path: 'notifications/$id', component: lazy(() => import('./detail.tsx'), 'NotificationDetail') },
  ],
};
