import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const prices: Page = {
  title: 'Prices',
  path: 'prices',
  section: 'Account',
  routes: [{ path: 'prices', component: lazy(() => import('./prices.tsx'), 'Prices') }],
};
