import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

const lazyChange = (name: 'DrainHost' | 'UndrainHost' | 'ForgetHost') => lazy(() => import('./change.tsx'), name);

export const hosts: Page = {
  title: 'Hosts',
  path: 'hosts',
  section: 'Operator',
  operatorOnly: true,
  routes: [
    {
      path: 'hosts',
      component: lazy(() => import('./hosts.tsx'), 'HostList'),
      children: [
        { path: '$hostRegion/$host/drain', component: lazyChange('DrainHost') },
        { path: '$hostRegion/$host/undrain', component: lazyChange('UndrainHost') },
        { path: '$hostRegion/$host/forget', component: lazyChange('ForgetHost') },
      ],
    },
  ],
};
