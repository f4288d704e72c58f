import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';

export type Client = components['schemas']['Client'];

export const KIND = 'clients';

/** All clients; only for admins of the operator. */
export const clientsQuery = queryOptions({
  queryKey: [KIND],
  queryFn: () => allRows((query) => unwrap(api.GET('/cloudyard/v1/clients', { params: { query } }))),
});

export const CLIENT = '/cloudyard/v1/clients/{client_id}';

/** `id` is undefined while the client of a project loads. */
export const clientQuery = (id: number | undefined) =>
  queryOptions({
    queryKey: [KIND, id],
    queryFn: () => unwrap(api.GET(CLIENT, { params: { path: { client_id: id! } } })),
    enabled: id !== undefined,
  });
