import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const pullSecrets: Page = {
  title: 'Pull secrets',
  path: 'pull-secrets',
  section: 'Containers',
  // A pull secret may have the name `new`.
  create: { title: 'Create a pull secret', path: 'pull-secrets/~new' },
  routes: [
    {
      path: 'pull-secrets',
      component: lazy(() => import('./list.tsx'), 'PullSecretList'),
      children: [{ path: '~new', component: lazy(() => import('./forms.tsx'), 'CreatePullSecret') }],
    },
    {
      path: 'pull-secrets/$name',
      component: lazy(() => import('./detail.tsx'), 'PullSecretDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./forms.tsx'), 'EditPullSecret') },
        { path: 'verify', component: lazy(() => import('./verify.tsx'), 'VerifyPullSecret') },
        { path: 'delete', component: lazy(() => import('./forms.tsx'), 'DeletePullSecret') },
      ],
    },
  ],
};
