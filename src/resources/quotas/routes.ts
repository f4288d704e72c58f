import type { Routes } from '../../http/app.ts';
import {
  AllClientQuotas,
  ClientPath,
  ClientQuotaFigures,
  ClientRegionPath,
  GlobalQuotas,
  RegionalQuotas,
  UpdateClientQuotas,
} from './schema.ts';
import type { ClientQuotas } from './service.ts';

const tags = ['Quotas'];

export function quotaRoutes(quotas: ClientQuotas): Routes {
  return (app) => {
    app.get(
      '/cloud/v2/client_quotas',
      {
        schema: {
          operationId: 'listClientQuotas',
          summary: "Get all quotas of the token's client",
          tags,
          response: { 200: AllClientQuotas },
        },
      },
      (request) => quotas.all(request.by.actor.clientId),
    );
    app.get(
      '/cloud/v2/global_quotas/:client_id',
      {
        schema: {
          operationId: 'getGlobalQuotas',
          summary: 'Get the global quotas of a client',
          tags,
          params: ClientPath,
          response: { 200: GlobalQuotas },
        },
      },
      (request) => quotas.global(request.params.client_id),
    );
    app.get(
      '/cloud/v2/regional_quotas/:client_id/:region_id',
      {
        schema: {
          operationId: 'getRegionalQuotas',
          summary: 'Get the quotas of a client in a region',
          tags,
          params: ClientRegionPath,
          response: { 200: RegionalQuotas },
        },
      },
      (request) => quotas.regional(request.params.client_id, request.params.region_id),
    );
    app.patch(
      '/cloudyard/v1/clients/:client_id/quotas',
      {
        schema: {
          operationId: 'updateClientQuotas',
          summary: 'Set limits of a client; null goes back to the default',
          tags,
          params: ClientPath,
          body: UpdateClientQuotas,
          response: { 200: ClientQuotaFigures },
        },
      },
      (request) => quotas.update(request.by, request.params.client_id, request.body as UpdateClientQuotas),
    );
  };
}
