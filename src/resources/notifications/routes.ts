import type { Routes } from '../../http/app.ts';
import {
  ClientPath,
  DeliveryPath,
  ListNotifications,
  Notification,
  NotificationCollection,
  NotificationPath,
} from './schema.ts';
import type { Notifications } from './service.ts';

const tags = ['Notifications'];
const many = '/cloudyard/v1/clients/:client_id/notifications';
const one = `${many}/:notification_id`;

export function notificationRoutes(notifications: Notifications): Routes {
  return (app) => {
    app.get(
      many,
      {
        schema: {
          operationId: 'listNotifications',
          summary: 'List what a client was told, newest first, with what became of each delivery',
          tags,
          params: ClientPath,
          querystring: ListNotifications,
          response: { 200: NotificationCollection },
        },
      },
      (request) => notifications.list(request.params.client_id, request.query),
    );
    app.get(
      one,
      {
        schema: {
          operationId: 'getNotification',
          summary: 'Get a notification',
          tags,
          params: NotificationPath,
          response: { 200: Notification },
        },
      },
      (request) => notifications.get(request.params.client_id, request.params.notification_id),
    );
    app.post(
      `${one}/deliveries/:delivery_id/replay`,
      {
        schema: {
          operationId: 'replayDelivery',
          summary: 'Send a notification once more to one receiver, under the same id',
          tags,
          params: DeliveryPath,
          response: { 200: Notification },
        },
      },
      ({ by, params }) => notifications.replay(by, params.client_id, params.notification_id, params.delivery_id),
    );
  };
}
