import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const networks: Page = {
  title: 'Networks',
  path: 'networks',
  section: 'Network',
  create: { title: 'Create a network', path: 'networks/new' },
  routes: [
    {
      path: 'networks',
      component: lazy(() => import('./list.tsx'), 'NetworkList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateNetwork') }],
    },
    {
      path: 'networks/$id',
      component: lazy(() => import('./detail.tsx'), 'NetworkDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditNetwork') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteNetwork') },
        { path: 'subnets/new', component: lazy(() => import('../subnets/create.tsx'), 'CreateNetworkSubnet') },
      ],
    },
  ],
};
