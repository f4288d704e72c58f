/** The operations of the notification threshold of a client. */
import { clientMember, clientReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { SetThreshold, Threshold } from './schema.ts';
import type { Thresholds } from './service.ts';

const operation = operationsOf({
  name: 'Notification threshold',
  description: 'When the usage of a quota reaches this percentage of its limit, the client is notified.',
});
const path = '/cloud/v2/client_quotas/:client_id/notification_threshold';

export const thresholdOperations = ({ thresholds }: { thresholds: Thresholds }) => [
  operation('GET', path, {
    id: 'getNotificationThreshold',
    summary: 'Get the notification threshold of a client',
    description: 'The response contains the last notification.',
    access: clientReader,
    response: Threshold,
    handle: ({ params }) => thresholds.get(params.client_id),
  }),
  operation('PUT', path, {
    id: 'setNotificationThreshold',
    summary: 'Set the notification threshold of a client',
    access: clientMember,
    body: SetThreshold,
    response: Threshold,
    handle: ({ by, params, body }) => thresholds.set(by, params.client_id, body),
  }),
  operation('DELETE', path, {
    id: 'deleteNotificationThreshold',
    summary: 'Reset the notification threshold of a client',
    description: 'The default applies again.',
    access: clientMember,
    handle: ({ by, params }) => thresholds.delete(by, params.client_id),
  }),
];
