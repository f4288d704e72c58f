/** The operations of clients. */
import { clientAdmin, clientReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { Client, UpdateClient } from './schema.ts';
import type { Clients } from './service.ts';

const operation = operationsOf({
  name: 'Clients',
  description:
    'A client is a tenant: it owns projects, tokens, quotas and webhooks. The operator creates clients by command.',
});
const one = '/cloudyard/v1/clients/:client_id';

export const clientOperations = (clients: Clients) => [
  operation('GET', one, {
    id: 'getClient',
    summary: 'Get a client',
    access: clientReader,
    answer: Client,
    handle: ({ params }) => clients.get(params.client_id),
  }),
  operation('PATCH', one, {
    id: 'updateClient',
    summary: 'Update a client',
    description: 'Sets the e-mail addresses that receive the notifications of the client.',
    access: clientAdmin,
    body: UpdateClient,
    answer: Client,
    handle: ({ by, params, body }) => clients.update(by, params.client_id, body),
  }),
];
