import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { pullSecretOperations } from './routes.ts';
import type { PullSecrets } from './service.ts';
import { usesOfProject } from './store.ts';

export const pullSecrets = {
  operations: pullSecretOperations,
  usesOfProject,
  reencrypt: (services: { pullSecrets: PullSecrets }) => services.pullSecrets.reencrypt(),
  events: [{ table: 'pull_secrets', kind: 'pull_secret', access: projectReader }],
} satisfies Resource;
