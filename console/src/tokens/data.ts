import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';

export type Token = components['schemas']['Token'];

export const KIND = 'tokens';

/** The tokens of a client; null: of the client of the session. */
export const tokensQuery = (clientId: number | null) =>
  queryOptions({
    queryKey: [KIND, clientId],
    queryFn: () =>
      allRows((page) =>
        unwrap(
          api.GET('/cloudyard/v1/tokens', {
            params: { query: { ...page, ...(clientId === null ? {} : { client_id: clientId }) } },
          }),
        ),
      ),
  });

export const tokenQuery = (id: string) =>
  queryOptions({
    queryKey: [KIND, 'one', id],
    queryFn: () => unwrap(api.GET('/cloudyard/v1/tokens/{token_id}', { params: { path: { token_id: Number(id) } } })),
  });

/** Names may be empty; the part of the token before the `$` is always there. */
export function nameOf({ name, key_id }: Token): string {
  return name === '' ? key_id : name;
}
