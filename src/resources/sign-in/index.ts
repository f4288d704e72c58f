import type { Resource } from '../resource.ts';
import { signInOperations } from './routes.ts';

export const signIn = {
  operations: signInOperations,
  events: [],
} satisfies Resource;
