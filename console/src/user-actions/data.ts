import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import { ApiError } from '../api/errors.ts';
import type { components, paths } from '../api/openapi.d.ts';
import { type ListState, PAGE_SIZE, useListState } from '../ui/list-state.ts';

export type UserAction = components['schemas']['UserAction'];
type Filter = NonNullable<paths['/cloud/v1/user_actions']['get']['parameters']['query']>;

export const KIND = 'user_actions';
export const USER_ACTIONS = '/cloud/v1/user_actions';

/** The filter in the URL. The server filters, because the log has no retention limit. */
function filterOf(state: ListState): Filter {
  const [type, group, name] = ['type', 'group', 'q'].map((key) => state.get(key));
  return {
    limit: PAGE_SIZE,
    offset: (state.page - 1) * PAGE_SIZE,
    order_by: state.sort === 'at' ? 'asc' : 'desc',
    ...(type && { action_type: [type] as NonNullable<Filter['action_type']> }),
    ...(group && { api_group: [group] as NonNullable<Filter['api_group']> }),
    ...(name && { search_field: name }),
  };
}

/** The page of user actions that the URL names. */
export function useUserActions() {
  const filter = filterOf(useListState());
  return useQuery({
    queryKey: [KIND, filter],
    queryFn: () => unwrap(api.GET(USER_ACTIONS, { params: { query: filter } })),
    placeholderData: keepPreviousData,
  });
}

/** The subscription of the client; only for admins. */
export const subscriptionQuery = queryOptions({
  queryKey: [KIND, 'subscription'],
  queryFn: async () =>
    (await unwrap(api.GET(`${USER_ACTIONS}/subscriptions_list`, { params: { query: {} } }))).results[0] ?? null,
});

export const DELIVERY = '/cloudyard/v1/user_actions/{user_action_id}/delivery';
/** While an attempt is due, its outcome is read again. */
const REFRESH_MS = 2000;

/** The delivery of an action to the subscription; null for actions from before it. */
export const deliveryQuery = (id: string) =>
  queryOptions({
    queryKey: [KIND, 'delivery', id],
    queryFn: () =>
      unwrap(api.GET(DELIVERY, { params: { path: { user_action_id: Number(id) } } })).catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }),
    refetchInterval: ({ state }) => (state.data?.state === 'pending' ? REFRESH_MS : false),
  });
