import type { Resource } from '../resource.ts';
import { pullSecretRoutes } from './routes.ts';
import type { PullSecrets } from './service.ts';
import { usesOfProject } from './store.ts';

export const pullSecrets = {
  operations: (services: { pullSecrets: PullSecrets }) => pullSecretRoutes(services.pullSecrets),
  usesOfProject,
  reencrypt: (services: { pullSecrets: PullSecrets }) => services.pullSecrets.reencrypt(),
} satisfies Resource;
