import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const lifecyclePolicies: Page = {
  title: 'Lifecycle policies',
  path: 'lifecycle-policies',
  section: 'Storage',
  create: { title: 'Create a lifecycle policy', path: 'lifecycle-policies/new' },
  routes: [
    {
      path: 'lifecycle-policies',
      component: lazy(() => import('./list.tsx'), 'PolicyList'),
      children: [
        { path: 'new', component: lazy(() => import('./create.tsx'), 'CreatePolicy') },
        { path: 'pause', component: lazy(() => import('./selection.tsx'), 'PauseSelected') },
        { path: 'resume', component: lazy(() => import('./selection.tsx'), 'ResumeSelected') },
        { path: 'run', component: lazy(() => import('./selection.tsx'), 'RunSelected') },
      ],
    },
    {
      path: 'lifecycle-policies/$id',
      component: lazy(() => import('./detail.tsx'), 'PolicyDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditPolicy') },
        { path: 'pause', component: lazy(() => import('./set-status.tsx'), 'PausePolicy') },
        { path: 'resume', component: lazy(() => import('./set-status.tsx'), 'ResumePolicy') },
        { path: 'run', component: lazy(() => import('./run.tsx'), 'RunPolicy') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeletePolicy') },
        { path: 'volumes/add', component: lazy(() => import('./add-volumes.tsx'), 'AddVolumes') },
        { path: 'schedules/new', component: lazy(() => import('./add-schedule.tsx'), 'AddSchedule') },
        { path: 'schedules/$schedule', component: lazy(() => import('./edit-schedule.tsx'), 'EditSchedule') },
        { path: 'schedules/$schedule/remove', component: lazy(() => import('./remove.tsx'), 'RemoveSchedule') },
        { path: 'volumes/$volume/remove', component: lazy(() => import('./remove.tsx'), 'RemoveVolume') },
      ],
    },
  ],
};
