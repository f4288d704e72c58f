/** The HTTP operations of what a registry holds. */
import { Type } from 'typebox';
import type { Routes } from '../../../http/app.ts';
import { sendInGroups } from '../../../http/streamed-list.ts';
import {
  ArtifactCollection,
  ArtifactPath,
  RegistryPath,
  RepositoryCollection,
  RepositoryPath,
  TagPath,
} from '../schema.ts';
import type { RegistryContents } from './service.ts';

const tags = ['Registries'];
const all = '/cloud/v1/registries/:project_id/:region_id/:registry_id/repositories';
const one = `${all}/:repository_name`;
const artifact = `${one}/artifacts/:digest`;
const nothing = { 204: Type.Null({ description: 'Done' }) };

export function registryContentsRoutes(contents: RegistryContents): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string) => ({ operationId, summary, tags });

    app.get(
      all,
      {
        schema: {
          ...summarize('listRegistryRepositories', 'List the repositories of a registry by name'),
          params: RegistryPath,
          response: { 200: RepositoryCollection },
        },
      },
      (request) => contents.listRepositories(request.scope, request.params.registry_id),
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteRegistryRepository', 'Delete a repository with its artifacts'),
          params: RepositoryPath,
          response: nothing,
        },
      },
      async (request, reply) => {
        const { registry_id, repository_name } = request.params;
        await contents.deleteRepository(request.by, request.scope, registry_id, repository_name);
        return reply.code(204).send(null);
      },
    );

    app.get(
      `${one}/artifacts`,
      {
        schema: {
          ...summarize('listRegistryArtifacts', 'List the artifacts of a repository, newest first'),
          params: RepositoryPath,
          response: { 200: ArtifactCollection },
        },
      },
      async (request, reply) => {
        const { registry_id, repository_name } = request.params;
        return sendInGroups(reply, await contents.listArtifacts(request.scope, registry_id, repository_name));
      },
    );

    app.delete(
      artifact,
      {
        schema: {
          ...summarize('deleteRegistryArtifact', 'Delete an artifact with its tags'),
          params: ArtifactPath,
          response: nothing,
        },
      },
      async (request, reply) => {
        const { registry_id, repository_name, digest } = request.params;
        await contents.deleteArtifact(request.by, request.scope, registry_id, repository_name, digest);
        return reply.code(204).send(null);
      },
    );

    app.delete(
      `${artifact}/tags/:tag_name`,
      {
        schema: {
          ...summarize('deleteRegistryTag', 'Delete a tag'),
          params: TagPath,
          response: nothing,
        },
      },
      async (request, reply) => {
        const { registry_id, repository_name: repository, digest, tag_name: tag } = request.params;
        await contents.deleteTag(request.by, request.scope, registry_id, { repository, digest, tag });
        return reply.code(204).send(null);
      },
    );
  };
}
