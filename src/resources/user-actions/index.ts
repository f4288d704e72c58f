import type { Resource } from '../resource.ts';
import { userActionOperations } from './routes.ts';
import type { UserActions } from './service.ts';

export const userActions = {
  operations: (services: { userActions: UserActions }) => userActionOperations(services.userActions),
  reencrypt: (services: { userActions: UserActions }) => services.userActions.reencrypt(),
} satisfies Resource;
