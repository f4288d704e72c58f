import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const clients: Page = {
  title: 'Clients',
  path: 'clients',
  section: 'Operator',
  operatorOnly: true,
  create: { title: 'Create a client', path: 'clients/new' },
  routes: [
    {
      path: 'clients',
      component: lazy(() => import('./list.tsx'), 'ClientList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateClient') }],
    },
    {
      path: 'clients/$id',
      component: lazy(() => import('./detail.tsx'), 'ClientDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditClient') },
        { path: 'limit', component: lazy(() => import('./set-limit.tsx'), 'SetClientLimit') },
      ],
    },
  ],
};
