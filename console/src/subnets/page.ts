import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const subnets: Page = {
  title: 'Subnets',
  path: 'subnets',
  section: 'Network',
  create: { title: 'Create a subnet', path: 'subnets/new' },
  routes: [
    {
      path: 'subnets',
      component: lazy(() => import('./list.tsx'), 'SubnetList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateSubnet') }],
    },
    {
      path: 'subnets/$id',
      component: lazy(() => import('./detail.tsx'), 'SubnetDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditSubnet') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteSubnet') },
      ],
    },
  ],
};
