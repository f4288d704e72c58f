import type { Resource } from '../resource.ts';
import { notificationOperations } from './routes.ts';
import type { Notifications } from './service.ts';

export const notifications = {
  operations: (services: { notifications: Notifications }) => notificationOperations(services.notifications),
} satisfies Resource;
