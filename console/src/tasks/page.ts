import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const tasks: Page = {
  title: 'Tasks',
  path: 'tasks',
  section: 'Project',
  routes: [
    {
      path: 'tasks',
      component: lazy(() => import('./list.tsx'), 'TaskList'),
      children: [
        { path: 'acknowledge', component: lazy(() => import('./acknowledge-all.tsx'), 'AcknowledgeAllTasks') },
      ],
    },
    { path: 'tasks/$id', component: lazy(() => import('./detail.tsx'), 'TaskDetail') },
  ],
};
