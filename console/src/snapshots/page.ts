import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const snapshots: Page = {
  title: 'Snapshots',
  path: 'snapshots',
  section: 'Storage',
  create: { title: 'Create a snapshot', path: 'snapshots/new' },
  routes: [
    {
      path: 'snapshots',
      component: lazy(() => import('./list.tsx'), 'SnapshotList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateSnapshot') }],
    },
    {
      path: 'snapshots/$id',
      component: lazy(() => import('./detail.tsx'), 'SnapshotDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditSnapshot') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteSnapshot') },
      ],
    },
  ],
};
