import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { apiKeyRoutes } from './routes.ts';
import type { ApiKeys } from './service.ts';
import { usesOfProject } from './store.ts';

type Services = { apiKeys: ApiKeys };

export const apiKeys = {
  operations: apiKeyRoutes,
  usesOfProject,
  duties: (services: Services) => [{ seconds: 3600, work: services.apiKeys.removeDeleted }],
  events: [{ table: 'api_keys', kind: 'api_key', access: projectReader, softDelete: true }],
} satisfies Resource;
