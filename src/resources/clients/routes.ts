import type { Routes } from '../../http/app.ts';
import { Client, ClientPath, UpdateClient } from './schema.ts';
import type { Clients } from './service.ts';

const tags = ['Clients'];
const path = '/cloudyard/v1/clients/:client_id';

export function clientRoutes(clients: Clients): Routes {
  return (app) => {
    app.get(
      path,
      {
        schema: {
          operationId: 'getClient',
          summary: 'Get a client',
          tags,
          params: ClientPath,
          response: { 200: Client },
        },
      },
      (request) => clients.get(request.params.client_id),
    );
    app.patch(
      path,
      {
        schema: {
          operationId: 'updateClient',
          summary: 'Set the e-mail addresses that notifications of a client go to',
          tags,
          params: ClientPath,
          body: UpdateClient,
          response: { 200: Client },
        },
      },
      (request) => clients.update(request.by, request.params.client_id, request.body),
    );
  };
}
