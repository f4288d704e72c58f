import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const tokens: Page = {
  title: 'Tokens',
  path: 'tokens',
  section: 'Account',
  adminOnly: true,
  create: { title: 'Create a token', path: 'tokens/new' },
  routes: [
    {
      path: 'tokens',
      component: lazy(() => import('./list.tsx'), 'TokenList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateToken') }],
    },
    {
      path: 'tokens/$token',
      component: lazy(() => import('./detail.tsx'), 'TokenDetail'),
      children: [{ path: 'revoke', component: lazy(() => import('./revoke.tsx'), 'RevokeToken') }],
    },
  ],
};
