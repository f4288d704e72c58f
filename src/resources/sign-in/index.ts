import type { Resource } from '../resource.ts';
import type { Sessions } from '../sessions/service.ts';
import { signInOperations } from './routes.ts';
import type { SignIn } from './service.ts';

export const signIn = {
  operations: (services: { signIn: SignIn | null; sessions: Sessions }) => signInOperations(services),
  events: [],
} satisfies Resource;
