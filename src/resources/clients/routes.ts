/** The operations of clients. */
import { clientAdmin, clientReader, operatorAdmin } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { Page } from '../../http/shapes.ts';
import { Client, ClientCollection, CreateClient, UpdateClient } from './schema.ts';
import { type Clients, errorsOfClient } from './service.ts';

const operation = operationsOf({
  name: 'Clients',
  description: 'A client is a tenant: it owns projects, tokens, quotas and webhooks. The operator creates clients.',
});
const all = '/cloudyard/v1/clients';
const one = `${all}/:client_id`;

export const clientOperations = ({ clients }: { clients: Clients }) => [
  operation('POST', all, {
    id: 'createClient',
    summary: 'Create a client',
    description: 'With a default project, and a network in each region. Create a token for it with `createToken`.',
    access: operatorAdmin,
    body: CreateClient,
    response: Client,
    status: 201,
    handle: ({ by, body }) => clients.createByApi(by, body),
  }),
  operation('GET', all, {
    id: 'listClients',
    summary: 'List clients',
    description: 'The oldest client comes first.',
    access: operatorAdmin,
    query: Page,
    response: ClientCollection,
    handle: ({ query }) => clients.page(query),
  }),
  operation('GET', one, {
    id: 'getClient',
    summary: 'Get a client',
    access: clientReader,
    response: Client,
    handle: ({ params }) => clients.get(params.client_id),
  }),
  operation('PATCH', one, {
    id: 'updateClient',
    summary: 'Update a client',
    description: 'Sets the name, and the e-mail addresses that receive the notifications of the client.',
    access: clientAdmin,
    body: UpdateClient,
    bodyErrors: errorsOfClient,
    response: Client,
    handle: ({ by, params, body }) => clients.update(by, params.client_id, body),
  }),
];
