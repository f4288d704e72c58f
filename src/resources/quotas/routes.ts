/** The operations of quotas. */
import { clientReader, operatorAdmin, tokenReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import type { QuotaAudit } from '../../quota/audit.ts';
import {
  AllClientQuotas,
  ClientQuotaFigures,
  GlobalQuotas,
  QuotaDriftCollection,
  RegionalQuotas,
  UpdateClientQuotas,
} from './schema.ts';
import { type ClientQuotas, toDrifts } from './service.ts';

const operation = operationsOf({
  name: 'Quotas',
  description:
    'Every kind of quota has a `_limit` and a `_usage`. Limits apply to a client in a region, or everywhere for global ' +
    'kinds. Enforced are the kinds of the resources that Cloudyard has: file shares, load balancers, volumes, snapshots, ' +
    'snapshot schedules, registries, networks, subnets, secrets and projects. The usage of the other kinds is always 0.',
});

export const quotaOperations = (quotas: ClientQuotas, audit: QuotaAudit) => [
  operation('GET', '/cloudyard/v1/quota_audit', {
    id: 'auditQuotas',
    summary: 'Compare quota usage with the resources',
    description: 'Lists the usages that differ; `cloudyard quota audit --repair` corrects them.',
    access: operatorAdmin,
    response: QuotaDriftCollection,
    handle: async () => toDrifts(await audit.find()),
  }),
  operation('GET', '/cloud/v2/client_quotas', {
    id: 'listClientQuotas',
    summary: 'List the quotas of the client',
    description: "The client is that of the request's token.",
    access: tokenReader,
    response: AllClientQuotas,
    handle: ({ by }) => quotas.all(by.actor.clientId),
  }),
  operation('GET', '/cloud/v2/global_quotas/:client_id', {
    id: 'getGlobalQuotas',
    summary: 'Get the global quotas of a client',
    access: clientReader,
    response: GlobalQuotas,
    handle: ({ params }) => quotas.global(params.client_id),
  }),
  operation('GET', '/cloud/v2/regional_quotas/:client_id/:region_id', {
    id: 'getRegionalQuotas',
    summary: 'Get the quotas of a client in a region',
    access: clientReader,
    response: RegionalQuotas,
    handle: ({ params }) => quotas.regional(params.client_id, params.region_id),
  }),
  operation('PATCH', '/cloudyard/v1/clients/:client_id/quotas', {
    id: 'updateClientQuotas',
    summary: 'Set the limits of a client',
    description: 'Null resets a limit to the default. Regional kinds need `region_id`, global kinds must not have it.',
    access: operatorAdmin,
    body: UpdateClientQuotas,
    bodyErrors: quotas.bodyErrors,
    response: ClientQuotaFigures,
    handle: ({ by, params, body }) => quotas.update(by, params.client_id, body as UpdateClientQuotas),
  }),
];
