import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const development: Page = {
  title: 'Development mode',
  path: 'development',
  section: 'Operator',
  operatorOnly: true,
  developmentOnly: true,
  create: { title: 'Inject a fault', path: 'development/faults/new' },
  routes: [
    {
      path: 'development',
      component: lazy(() => import('./development.tsx'), 'Development'),
      children: [
        { path: 'clock', component: lazy(() => import('./set-clock.tsx'), 'SetClock') },
        { path: 'faults/new', component: lazy(() => import('./create-fault.tsx'), 'CreateFault') },
        { path: 'faults/$fault/clear', component: lazy(() => import('./clear-fault.tsx'), 'ClearFault') },
        { path: 'faults/clear', component: lazy(() => import('./clear-faults.tsx'), 'ClearFaults') },
      ],
    },
  ],
};
