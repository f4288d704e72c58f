import { clientReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { notificationOperations } from './routes.ts';

const notification = { kind: 'notification', access: clientReader, project: `r.data ->> 'project_id'` };

export const notifications = {
  operations: notificationOperations,
  events: [
    { ...notification, table: 'notifications', silentRemoval: true },
    {
      ...notification,
      table: 'notification_deliveries',
      owner: { table: 'notifications', id: 'c.notification_id' },
    },
  ],
} satisfies Resource;
