import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import type { components, paths } from '../api/openapi.d.ts';
import { queryClient } from '../api/query-client.ts';

export type Notification = components['schemas']['Notification'];
export type Delivery = components['schemas']['Delivery'];

const NOTIFICATIONS = '/cloudyard/v1/clients/{client_id}/notifications';
export const RESEND = `${NOTIFICATIONS}/{notification_id}/deliveries/{delivery_id}/replay` as const;

/** Deliveries change without events. */
const REFRESH_MS = 2000;
const isPending = ({ deliveries }: Notification) => deliveries.some(({ state }) => state === 'pending');

export type NotificationFilter = NonNullable<paths[typeof NOTIFICATIONS]['get']['parameters']['query']>;

export const notificationsQuery = (clientId: number | undefined, page: NotificationFilter) =>
  queryOptions({
    queryKey: ['notifications', clientId, page],
    queryFn: () => unwrap(api.GET(NOTIFICATIONS, { params: { path: { client_id: clientId! }, query: page } })),
    enabled: clientId !== undefined,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.results.some(isPending) ? REFRESH_MS : false),
  });

export const notificationQuery = (clientId: number | undefined, id: string) =>
  queryOptions({
    queryKey: ['notifications', clientId, id],
    queryFn: () =>
      unwrap(
        api.GET(`${NOTIFICATIONS}/{notification_id}`, {
          params: { path: { client_id: clientId!, notification_id: id } },
        }),
      ),
    enabled: clientId !== undefined,
    refetchInterval: ({ state }) => (state.data && isPending(state.data) ? REFRESH_MS : false),
  });

/** Sends the notification again to one receiver. */
export async function resend({ client_id, id }: Notification, delivery: Delivery): Promise<void> {
  const path = { client_id, notification_id: id, delivery_id: delivery.id };
  await unwrap(api.POST(RESEND, { params: { path } }));
  await queryClient.invalidateQueries({ queryKey: ['notifications'] });
}
