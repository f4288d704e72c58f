/** The HTTP operations of the users of a registry. */
import { Type } from 'typebox';
import type { Routes } from '../../../http/app.ts';
import {
  CreateRegistryUser,
  CreateRegistryUsers,
  RegistryPath,
  RegistryUser,
  RegistryUserCollection,
  RegistryUsersWithSecrets,
  RegistryUserWithSecret,
  UpdateRegistryUser,
  UserPath,
} from '../schema.ts';
import type { RegistryUsers } from './service.ts';

const tags = ['Registries'];
const all = '/cloud/v1/registries/:project_id/:region_id/:registry_id/users';
const one = `${all}/:user_id`;

export function registryUserRoutes(users: RegistryUsers): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string) => ({ operationId, summary, tags });

    app.post(
      all,
      {
        schema: {
          ...summarize('createRegistryUser', 'Let a user in to a registry; the answer has the secret'),
          params: RegistryPath,
          body: CreateRegistryUser,
          response: { 201: RegistryUserWithSecret },
        },
      },
      async (request, reply) => {
        const made = await users.create(request.by, request.scope, request.params.registry_id, request.body);
        return reply.code(201).send(made);
      },
    );

    app.post(
      `${all}/batch`,
      {
        schema: {
          ...summarize('createRegistryUsers', 'Let several users in to a registry: all of them, or none'),
          params: RegistryPath,
          body: CreateRegistryUsers,
          response: { 201: RegistryUsersWithSecrets },
        },
      },
      async (request, reply) => {
        const { registry_id } = request.params;
        return reply.code(201).send(await users.createMany(request.by, request.scope, registry_id, request.body.users));
      },
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listRegistryUsers', 'List the users of a registry, oldest first'),
          params: RegistryPath,
          response: { 200: RegistryUserCollection },
        },
      },
      (request) => users.list(request.scope, request.params.registry_id),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateRegistryUser', 'Change until when a user is let in, and to what'),
          params: UserPath,
          body: UpdateRegistryUser,
          response: { 200: RegistryUser },
        },
      },
      (request) => {
        const { registry_id, user_id } = request.params;
        return users.update(request.by, request.scope, registry_id, user_id, request.body);
      },
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteRegistryUser', 'Let a user in no more'),
          params: UserPath,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        const { registry_id, user_id } = request.params;
        await users.delete(request.by, request.scope, registry_id, user_id);
        return reply.code(204).send(null);
      },
    );

    app.post(
      `${one}/refresh_secret`,
      {
        schema: {
          ...summarize('refreshRegistryUserSecret', 'Give a user a new secret, which the answer has'),
          params: UserPath,
          response: { 200: RegistryUserWithSecret },
        },
      },
      (request) => {
        const { registry_id, user_id } = request.params;
        return users.refreshSecret(request.by, request.scope, registry_id, user_id);
      },
    );
  };
}
