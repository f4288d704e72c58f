import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const workers: Page = {
  title: 'Workers and drivers',
  path: 'workers',
  section: 'Operator',
  operatorOnly: true,
  routes: [{ path: 'workers', component: lazy(() => import('./workers.tsx'), 'Workers') }],
};
