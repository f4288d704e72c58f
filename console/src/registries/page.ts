import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const registries: Page = {
  title: 'Registries',
  path: 'registries',
  section: 'Containers',
  create: { title: 'Create a registry', path: 'registries/new' },
  routes: [
    {
      path: 'registries',
      component: lazy(() => import('./list.tsx'), 'RegistryList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateRegistry') }],
    },
    {
      path: 'registries/$id',
      component: lazy(() => import('./detail.tsx'), 'RegistryDetail'),
      children: [
        { path: 'resize', component: lazy(() => import('./resize.tsx'), 'ResizeRegistry') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteRegistry') },
        { path: 'delete-repository', component: lazy(() => import('./delete.tsx'), 'DeleteRepository') },
        { path: 'delete-artifact', component: lazy(() => import('./delete.tsx'), 'DeleteArtifact') },
        { path: 'delete-tag', component: lazy(() => import('./delete.tsx'), 'DeleteTag') },
        { path: 'users/new', component: lazy(() => import('./user-forms.tsx'), 'CreateUser') },
        { path: 'users/$user/edit', component: lazy(() => import('./user-forms.tsx'), 'EditUser') },
        { path: 'users/$user/secret', component: lazy(() => import('./user-forms.tsx'), 'RefreshSecret') },
        { path: 'users/$user/delete', component: lazy(() => import('./delete.tsx'), 'DeleteUser') },
      ],
    },
  ],
};
