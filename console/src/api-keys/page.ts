import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const apiKeys: Page = {
  title: 'API keys',
  path: 'api-keys',
  section: 'Containers',
  // A key may have the name `new`.
  create: { title: 'Create an API key', path: 'api-keys/~new' },
  routes: [
    {
      path: 'api-keys',
      component: lazy(() => import('./list.tsx'), 'ApiKeyList'),
      children: [{ path: '~new', component: lazy(() => import('./create.tsx'), 'CreateApiKey') }],
    },
    {
      path: 'api-keys/$name',
      component: lazy(() => import('./detail.tsx'), 'ApiKeyDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditApiKey') },
        { path: 'disable', component: lazy(() => import('./edit.tsx'), 'DisableApiKey') },
        { path: 'enable', component: lazy(() => import('./edit.tsx'), 'EnableApiKey') },
        { path: 'verify', component: lazy(() => import('./verify.tsx'), 'VerifyApiKey') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteApiKey') },
      ],
    },
  ],
};
