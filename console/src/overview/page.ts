import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const overview: Page = {
  title: 'Overview',
  path: 'overview',
  section: 'Project',
  routes: [{ path: 'overview', component: lazy(() => import('./overview.tsx'), 'Overview') }],
};
