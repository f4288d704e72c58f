import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const fileShares: Page = {
  title: 'File shares',
  path: 'file-shares',
  section: 'Storage',
  create: { title: 'Create a file share', path: 'file-shares/new' },
  routes: [
    {
      path: 'file-shares',
      component: lazy(() => import('./list.tsx'), 'FileShareList'),
      children: [{ path: 'new', component: lazy(() => import('./create.tsx'), 'CreateFileShare') }],
    },
    {
      path: 'file-shares/$id',
      component: lazy(() => import('./detail.tsx'), 'FileShareDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditFileShare') },
        { path: 'extend', component: lazy(() => import('./extend.tsx'), 'ExtendFileShare') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteFileShare') },
        { path: 'access-rules/new', component: lazy(() => import('./create-access-rule.tsx'), 'CreateAccessRule') },
        {
          path: 'access-rules/$rule/remove',
          component: lazy(() => import('./remove-access-rule.tsx'), 'RemoveAccessRule'),
        },
      ],
    },
  ],
};
