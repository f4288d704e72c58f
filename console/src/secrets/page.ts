import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const secrets: Page = {
  title: 'Secrets',
  path: 'secrets',
  section: 'Network',
  create: { title: 'Create a secret', path: 'secrets/new' },
  routes: [
    {
      path: 'secrets',
      component: lazy(() => import('./list.tsx'), 'SecretList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateSecret') }],
    },
    {
      path: 'secrets/$id',
      component: lazy(() => import('./detail.tsx'), 'SecretDetail'),
      children: [{ path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteSecret') }],
    },
  ],
};
