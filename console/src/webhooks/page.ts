import { lazy } from '../ui/lazy.ts';
import type { Page } from '../ui/page.ts';

export const webhooks: Page = {
  title: 'Webhooks',
  path: 'webhooks',
  section: 'Account',
  hasWebhooks: true,
  create: { title: 'Create a webhook', path: 'webhooks/new' },
  routes: [
    {
      path: 'webhooks',
      component: lazy(() => import('./list.tsx'), 'Webhooks'),
      children: [
        { path: 'new', component: lazy(() => import('./create.tsx'), 'CreateWebhook') },
        { path: 'addresses', component: lazy(() => import('./addresses.tsx'), 'EditAddresses') },
      ],
    },
    {
      path: 'webhooks/$webhook',
      component: lazy(() => import('./detail.tsx'), 'WebhookDetail'),
      children: [
        { path: 'edit', component: lazy(() => import('./edit.tsx'), 'EditWebhook') },
        { path: 'new-secret', component: lazy(() => import('./new-secret.tsx'), 'NewWebhookSecret') },
        { path: 'delete', component: lazy(() => import('./delete.tsx'), 'DeleteWebhook') },
      ],
    },
  ],
};
