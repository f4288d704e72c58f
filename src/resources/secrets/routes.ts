/** The HTTP operations of secrets. */
import type { Routes } from '../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../http/shapes.ts';
import { CreateSecret, CreateSecretV1, ListSecrets, Secret, SecretCollection, SecretPath } from './schema.ts';
import type { Secrets } from './service.ts';

const tags = ['Secrets'];
const all = '/cloud/v1/secrets/:project_id/:region_id';
const one = `${all}/:secret_id`;

export function secretRoutes(secrets: Secrets): Routes {
  return (app) => {
    app.post(
      all.replace('/v1/', '/v2/'),
      {
        schema: {
          operationId: 'createSecret',
          summary: 'Store a certificate with its private key',
          tags,
          params: ProjectRegion,
          body: CreateSecret,
          response: { 200: TaskIds },
        },
      },
      (request) => secrets.create(request.by, request.scope, request.body),
    );

    app.post(
      all,
      {
        schema: {
          operationId: 'createSecretV1',
          summary: 'Store a secret of any type',
          tags,
          deprecated: true,
          params: ProjectRegion,
          body: CreateSecretV1,
          response: { 200: TaskIds },
        },
      },
      (request) => secrets.createV1(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          operationId: 'listSecrets',
          summary: 'List secrets without their payloads, oldest first',
          tags,
          params: ProjectRegion,
          querystring: ListSecrets,
          response: { 200: SecretCollection },
        },
      },
      (request) => secrets.list(request.scope, request.query),
    );

    app.get(
      one,
      {
        schema: {
          operationId: 'getSecret',
          summary: 'Get a secret without its payload',
          tags,
          params: SecretPath,
          response: { 200: Secret },
        },
      },
      (request) => secrets.get(request.scope, request.params.secret_id),
    );

    app.delete(
      one,
      {
        schema: {
          operationId: 'deleteSecret',
          summary: 'Delete a secret that nothing uses',
          tags,
          params: SecretPath,
          response: { 200: TaskIds },
        },
      },
      (request) => secrets.delete(request.by, request.scope, request.params.secret_id),
    );
  };
}
