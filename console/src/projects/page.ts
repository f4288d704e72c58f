import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const projects: Page = {
  title: 'Projects',
  path: 'projects',
  section: 'Account',
  create: { title: 'Create a project', path: 'projects/new' },
  routes: [
    {
      path: 'projects',
      component: lazy(() => import('./list.tsx'), 'ProjectList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateProject') }],
    },
    {
      path: 'projects/$id',
      component: lazy(() => import('./detail.tsx'), 'ProjectDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditProject') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteProject') },
      ],
    },
  ],
};
