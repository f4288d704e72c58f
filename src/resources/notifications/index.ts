import type { Resource } from '../resource.ts';
import { notificationRoutes } from './routes.ts';
import type { Notifications } from './service.ts';

export const notifications = {
  operations: (services: { notifications: Notifications }) => notificationRoutes(services.notifications),
} satisfies Resource;
