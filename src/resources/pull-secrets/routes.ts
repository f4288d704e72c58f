/** The HTTP operations of pull secrets. */
import { Type } from 'typebox';
import type { App, Routes } from '../../http/app.ts';
import { ProjectRegion } from '../../http/shapes.ts';
import {
  CreatePullSecret,
  DockerConfigJson,
  ListPullSecrets,
  PullSecret,
  PullSecretCollection,
  PullSecretPath,
  UpdatePullSecret,
  Verification,
} from './schema.ts';
import type { PullSecrets } from './service.ts';

const tags = ['Pull secrets'];
const all = '/cloud/v1/caas/secrets/:project_id/:region_id';
const one = `${all}/:secret_name`;

export function pullSecretRoutes(pullSecrets: PullSecrets): Routes {
  return (app) => {
    app.post(
      all,
      {
        schema: {
          operationId: 'createPullSecret',
          summary: 'Keep a login to a registry',
          tags,
          params: ProjectRegion,
          body: CreatePullSecret,
          response: { 200: PullSecret },
        },
      },
      (request) => pullSecrets.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          operationId: 'listPullSecrets',
          summary: 'List pull secrets by name, without their passwords',
          tags,
          params: ProjectRegion,
          querystring: ListPullSecrets,
          response: { 200: PullSecretCollection },
        },
      },
      (request) => pullSecrets.list(request.scope, request.query),
    );

    app.get(
      one,
      {
        schema: {
          operationId: 'getPullSecret',
          summary: 'Get a pull secret without its password',
          tags,
          params: PullSecretPath,
          response: { 200: PullSecret },
        },
      },
      (request) => pullSecrets.get(request.scope, request.params.secret_name),
    );

    app.patch(
      one,
      {
        schema: {
          operationId: 'updatePullSecret',
          summary: 'Change a pull secret',
          tags,
          params: PullSecretPath,
          body: UpdatePullSecret,
          response: { 200: PullSecret },
        },
      },
      (request) => pullSecrets.update(request.by, request.scope, request.params.secret_name, request.body),
    );

    app.delete(
      one,
      {
        schema: {
          operationId: 'deletePullSecret',
          summary: 'Delete a pull secret',
          tags,
          params: PullSecretPath,
          response: { 204: Type.Null() },
        },
      },
      async (request, reply) => {
        await pullSecrets.delete(request.by, request.scope, request.params.secret_name);
        return reply.code(204).send(null);
      },
    );

    useRoutes(app, pullSecrets);
  };
}

/** What pull secrets are good for. */
function useRoutes(app: App, pullSecrets: PullSecrets): void {
  const ours = one.replace('/cloud/', '/cloudyard/');

  app.post(
    `${ours}/verify`,
    {
      schema: {
        operationId: 'verifyPullSecret',
        summary: 'Try the login at the registry, and say what happened',
        tags,
        params: PullSecretPath,
        response: { 200: Verification },
      },
    },
    (request) => pullSecrets.verify(request.by, request.scope, request.params.secret_name),
  );

  app.get(
    `${ours}/dockerconfigjson`,
    {
      schema: {
        operationId: 'getPullSecretDockerConfigJson',
        summary: 'Get the file that skopeo, Podman and Kubernetes pull with; it has the password in it',
        tags,
        params: PullSecretPath,
        response: { 200: DockerConfigJson },
      },
    },
    (request, reply) => {
      reply.header('cache-control', 'no-store');
      return pullSecrets.dockerConfigJson(request.by, request.scope, request.params.secret_name);
    },
  );
}
