import type { Resource } from '../resource.ts';
import type { TokenManagement } from './management/service.ts';
import { tokenOperations } from './routes.ts';

export const tokens = {
  operations: (services: { tokenManagement: TokenManagement }) => tokenOperations(services.tokenManagement),
} satisfies Resource;
