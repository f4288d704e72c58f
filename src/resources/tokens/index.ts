import { clientAdmin } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { tokenOperations } from './routes.ts';

export const tokens = {
  operations: tokenOperations,
  events: [
    {
      table: 'tokens',
      kind: 'token',
      // Not to tokens that are limited to projects.
      access: clientAdmin,
      silentRemoval: true,
      columns: ['name', 'role', 'project_ids', 'expires_at', 'revoked_at'],
    },
  ],
} satisfies Resource;
