import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const regions: Page = {
  title: 'Regions',
  path: 'regions',
  section: 'Operator',
  operatorOnly: true,
  routes: [{ path: 'regions', component: lazy(() => import('./regions.tsx'), 'RegionList') }],
};
