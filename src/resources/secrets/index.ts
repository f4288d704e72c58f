import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { secretOperations } from './routes.ts';
import type { Secrets } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const secrets = {
  operations: secretOperations,
  usageOfRows,
  usesOfProject,
  reencrypt: (services: { secrets: Secrets }) => services.secrets.reencrypt(),
  events: [{ table: 'secrets', kind: 'secret', access: projectReader }],
} satisfies Resource;
