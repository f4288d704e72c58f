import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

const listenerRoutes = [
  { path: 'listeners/new', component: lazy(() => import('./listeners/create.tsx'), 'CreateListener') },
  { path: 'listeners/$part/edit', component: lazy(() => import('./listeners/edit.tsx'), 'EditListener') },
  { path: 'listeners/$part/delete', component: lazy(() => import('./listeners/delete.tsx'), 'DeleteListener') },
];

const poolRoutes = [
  { path: 'pools/new', component: lazy(() => import('./pools/create.tsx'), 'CreatePool') },
  { path: 'pools/$part/edit', component: lazy(() => import('./pools/edit.tsx'), 'EditPool') },
  { path: 'pools/$part/members', component: lazy(() => import('./pools/edit-members.tsx'), 'EditMembers') },
  { path: 'pools/$part/delete', component: lazy(() => import('./pools/delete.tsx'), 'DeletePool') },
];

const policyRoutes = [
  { path: 'l7-policies/new', component: lazy(() => import('./l7-policies/create.tsx'), 'CreateL7Policy') },
  { path: 'l7-policies/$part/edit', component: lazy(() => import('./l7-policies/edit.tsx'), 'EditL7Policy') },
  { path: 'l7-policies/$part/delete', component: lazy(() => import('./l7-policies/delete.tsx'), 'DeleteL7Policy') },
  { path: 'l7-policies/$part/rules/new', component: lazy(() => import('./l7-policies/rule.tsx'), 'CreateL7Rule') },
  { path: 'l7-policies/$part/up', component: lazy(() => import('./l7-policies/move-policy.tsx'), 'MovePolicyUp') },
  { path: 'l7-policies/$part/down', component: lazy(() => import('./l7-policies/move-policy.tsx'), 'MovePolicyDown') },
  {
    path: 'l7-policies/$part/rules/$rule/remove',
    component: lazy(() => import('./l7-policies/remove-rule.tsx'), 'RemoveL7Rule'),
  },
  {
    path: 'l7-policies/$part/rules/$rule/edit',
    component: lazy(() => import('./l7-policies/rule.tsx'), 'EditL7Rule'),
  },
];

export const loadBalancers: Page = {
  title: 'Load balancers',
  path: 'load-balancers',
  section: 'Network',
  create: { title: 'Create a load balancer', path: 'load-balancers/new' },
  routes: [
    {
      path: 'load-balancers',
      component: lazy(() => import('./list.tsx'), 'LoadBalancerList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateLoadBalancer') }],
    },
    {
      path: 'load-balancers/$id',
      component: lazy(() => import('./detail.tsx'), 'LoadBalancerDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditLoadBalancer') },
        { path: 'failover', component: lazy(() => import('./failover.tsx'), 'FailoverLoadBalancer') },
        { path: 'resize', component: lazy(() => import('./resize.tsx'), 'ResizeLoadBalancer') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteLoadBalancer') },
        ...listenerRoutes,
        ...poolRoutes,
        ...policyRoutes,
      ],
    },
  ],
};
