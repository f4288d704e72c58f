/** The operations of quota requests. */
import { operatorAdmin, tokenMember, tokenReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { NumberOf } from '../../http/path-parameters.ts';
import {
  ApproveQuotaRequest,
  CreateQuotaRequest,
  DeclineQuotaRequest,
  ListQuotaRequests,
  QuotaRequest,
  QuotaRequestCollection,
} from './schema.ts';
import type { QuotaRequests } from './service.ts';

const operation = operationsOf(
  {
    name: 'Quota requests',
    description:
      'A client asks for limits; the operator approves the request, which changes the limits, or declines it with a reason. ' +
      'The client is notified. `status` is `in progress`, `done` or `rejected`.',
  },
  { request_id: NumberOf('the request') },
);
const all = '/cloud/v2/limits_request';
const one = `${all}/:request_id` as const;
const decided = '/cloudyard/v1/limits_requests/:request_id';

export const quotaRequestOperations = ({ quotaRequests: requests }: { quotaRequests: QuotaRequests }) => [
  operation('POST', all, {
    id: 'createQuotaRequest',
    summary: 'Create a quota request',
    description: 'A limit is at least 1 and at least the current usage. Limits in a region need its `region_id`.',
    access: tokenMember,
    body: CreateQuotaRequest,
    bodyErrors: requests.bodyErrors,
    status: 201,
    handle: ({ by, body }) => requests.create(by, body),
  }),
  operation('GET', all, {
    id: 'listQuotaRequests',
    summary: 'List quota requests',
    description: 'The newest request comes first. Admins of the operator see the requests of all clients.',
    access: tokenReader,
    query: ListQuotaRequests,
    response: QuotaRequestCollection,
    handle: ({ by, query }) => requests.list(by.actor, query),
  }),
  operation('GET', one, {
    id: 'getQuotaRequest',
    summary: 'Get a quota request',
    access: tokenReader,
    response: QuotaRequest,
    handle: ({ by, params }) => requests.get(by.actor, params.request_id),
  }),
  operation('DELETE', one, {
    id: 'deleteQuotaRequest',
    summary: 'Delete a quota request',
    description: 'Withdraws a request that is in progress. A decided request cannot be deleted.',
    access: tokenMember,
    handle: ({ by, params }) => requests.delete(by, params.request_id),
  }),
  operation('POST', `${decided}/approve`, {
    id: 'approveQuotaRequest',
    summary: 'Approve a quota request',
    description: 'Sets the requested limits and notifies the client.',
    access: operatorAdmin,
    body: ApproveQuotaRequest,
    response: QuotaRequest,
    handle: ({ by, params, body }) =>
      requests.decide(by, params.request_id, { approve: true, reason: body?.reason ?? null }),
  }),
  operation('POST', `${decided}/decline`, {
    id: 'declineQuotaRequest',
    summary: 'Decline a quota request',
    description: 'The limits do not change. The client is notified with the reason.',
    access: operatorAdmin,
    body: DeclineQuotaRequest,
    response: QuotaRequest,
    handle: ({ by, params, body }) => requests.decide(by, params.request_id, { approve: false, reason: body.reason }),
  }),
];
