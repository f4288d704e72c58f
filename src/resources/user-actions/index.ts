import { clientAdmin } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { userActionOperations } from './routes.ts';
import type { UserActions } from './service.ts';

export const userActions = {
  operations: userActionOperations,
  reencrypt: (services: { userActions: UserActions }) => services.userActions.reencrypt(),
  events: [
    {
      table: 'user_action_subscriptions',
      kind: 'user_action_subscription',
      // Not to tokens that are limited to projects.
      access: clientAdmin,
      columns: ['url', 'auth_header_name', 'auth_header_value'],
    },
  ],
} satisfies Resource;
