import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const volumes: Page = {
  title: 'Volumes',
  path: 'volumes',
  section: 'Storage',
  create: { title: 'Create a volume', path: 'volumes/new' },
  routes: [
    {
      path: 'volumes',
      component: lazy(() => import('./list.tsx'), 'VolumeList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateVolume') }],
    },
    {
      path: 'volumes/$id',
      component: lazy(() => import('./detail.tsx'), 'VolumeDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditVolume') },
        { path: 'extend', component: lazy(() => import('./extend.tsx'), 'ExtendVolume') },
        { path: 'retype', component: lazy(() => import('./retype.tsx'), 'RetypeVolume') },
        { path: 'revert', component: lazy(() => import('./revert.tsx'), 'RevertVolume') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteVolume') },
        { path: 'snapshots/new', component: lazy(() => import('../snapshots/create.tsx'), 'CreateVolumeSnapshot') },
      ],
    },
  ],
};
