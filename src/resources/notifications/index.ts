import { clientReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { notificationOperations } from './routes.ts';
import type { Notifications } from './service.ts';

export const notifications = {
  operations: (services: { notifications: Notifications }) => notificationOperations(services.notifications),
  events: [
    { table: 'notifications', kind: 'notification', access: clientReader, silentRemoval: true },
    {
      table: 'notification_deliveries',
      kind: 'notification',
      access: clientReader,
      owner: { table: 'notifications', id: 'c.notification_id' },
    },
  ],
} satisfies Resource;
