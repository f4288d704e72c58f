/** The operations of notifications. */
import { clientMember, clientReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { ListNotifications, Notification, NotificationCollection } from './schema.ts';
import type { Notifications } from './service.ts';

const operation = operationsOf(
  {
    name: 'Notifications',
    description: 'A notification is sent once to each e-mail address and each webhook of the client: a delivery each.',
  },
  { notification_id: IdOf('the notification'), delivery_id: IdOf('the delivery') },
);
const all = '/cloudyard/v1/clients/:client_id/notifications';
const one = `${all}/:notification_id`;

export const notificationOperations = ({ notifications }: { notifications: Notifications }) => [
  operation('GET', all, {
    id: 'listNotifications',
    summary: 'List the notifications of a client',
    description: 'The newest comes first by default, each with the state of its deliveries.',
    access: clientReader,
    query: ListNotifications,
    response: NotificationCollection,
    handle: ({ by, params, query }) => notifications.list(by.actor, params.client_id, query),
  }),
  operation('GET', one, {
    id: 'getNotification',
    summary: 'Get a notification',
    access: clientReader,
    response: Notification,
    handle: ({ by, params }) => notifications.get(by.actor, params.client_id, params.notification_id),
  }),
  operation('POST', `${one}/deliveries/:delivery_id/replay`, {
    id: 'replayDelivery',
    summary: 'Repeat a delivery',
    description: 'Sends the notification again to one receiver, under the same ID.',
    access: clientMember,
    response: Notification,
    handle: ({ by, params }) => notifications.replay(by, params.client_id, params.notification_id, params.delivery_id),
  }),
];
