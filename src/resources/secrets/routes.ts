/** The operations of secrets. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { Page, TaskIds } from '../../http/shapes.ts';
import { CreateSecret, CreateSecretV1, Secret, SecretCollection } from './schema.ts';
import type { Secrets } from './service.ts';

const operation = operationsOf(
  {
    name: 'Secrets',
    description:
      'A secret is encrypted at rest, and no response contains its payload. Load balancers use secrets as certificates, as ' +
      'CA certificates of clients and as revocation lists.',
  },
  { secret_id: IdOf('the secret') },
);
const all = '/cloud/v1/secrets/:project_id/:region_id';
const one = `${all}/:secret_id`;

export const secretOperations = ({ secrets }: { secrets: Secrets }) => [
  operation('POST', '/cloud/v2/secrets/:project_id/:region_id', {
    id: 'createSecret',
    summary: 'Create a certificate',
    description: 'Stores a certificate with its chain and its private key, all in PEM.',
    access: projectMember,
    body: CreateSecret,
    bodyErrors: secrets.bodyErrors,
    response: TaskIds,
    handle: ({ by, scope, body }) => secrets.create(by, scope, body),
  }),
  operation('POST', all, {
    id: 'createSecretV1',
    summary: 'Create a secret of any type (v1)',
    description: 'For a certificate use v2.',
    deprecated: true,
    access: projectMember,
    body: CreateSecretV1,
    bodyErrors: (body, _isInvalid, _params, by) => secrets.bodyErrorsV1(body, by),
    response: TaskIds,
    handle: ({ by, scope, body }) => secrets.createV1(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listSecrets',
    summary: 'List secrets',
    description: 'The oldest secret comes first. Payloads are omitted.',
    access: projectReader,
    query: Page,
    response: SecretCollection,
    handle: ({ scope, query }) => secrets.list(scope, query),
  }),
  operation('GET', one, {
    id: 'getSecret',
    summary: 'Get a secret',
    description: 'The payload is omitted.',
    access: projectReader,
    response: Secret,
    handle: ({ scope, params }) => secrets.get(scope, params.secret_id),
  }),
  operation('DELETE', one, {
    id: 'deleteSecret',
    summary: 'Delete a secret',
    description: 'No resource may use the secret; the error names those that do.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => secrets.delete(by, scope, params.secret_id),
  }),
];
