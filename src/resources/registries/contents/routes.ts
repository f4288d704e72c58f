/** The operations of the repositories, artifacts and tags of a registry. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { NumberOf } from '../../../http/path-parameters.ts';
import { operationsOf } from '../../../http/operations.ts';
import { Page } from '../../../http/shapes.ts';
import { sendInGroups } from '../../../http/streamed-list.ts';
import { ArtifactCollection, Digest, RepositoryCollection, RepositoryName, TagName } from '../schema.ts';
import type { RegistryContents } from './service.ts';

const tag = {
  name: 'Registry contents',
  description:
    'Repositories, their artifacts (images, by digest) and the tags of artifacts. A push creates them; these operations ' +
    'list and delete them. The response to a deletion is sent when the content is deleted. The slashes of a repository name are ' +
    'URL-encoded in paths, once or twice: `team%2Fapp` or `team%252Fapp`.',
};
const operation = operationsOf(tag, {
  registry_id: NumberOf('the registry'),
  repository_name: RepositoryName,
  digest: Digest,
  tag_name: TagName,
});
const all = '/cloud/v1/registries/:project_id/:region_id/:registry_id/repositories';
const one = `${all}/:repository_name`;
const artifact = `${one}/artifacts/:digest`;

const repositoryOf = (params: { repository_name: string }) => params.repository_name.replaceAll(/%2f/gi, '/');

export const registryContentsOperations = (contents: RegistryContents) => [
  operation('GET', all, {
    id: 'listRegistryRepositories',
    summary: 'List the repositories of a registry',
    description: 'Sorted by name.',
    access: projectReader,
    query: Page,
    response: RepositoryCollection,
    handle: ({ scope, params, query }) => contents.listRepositories(scope, params.registry_id, query),
  }),
  operation('DELETE', one, {
    id: 'deleteRegistryRepository',
    summary: 'Delete a repository of a registry',
    description: 'Deletes the repository with its artifacts.',
    access: projectMember,
    handle: ({ by, scope, params }) =>
      contents.delete(by, scope, params.registry_id, { repository: repositoryOf(params) }),
  }),
  operation('GET', `${one}/artifacts`, {
    id: 'listRegistryArtifacts',
    summary: 'List the artifacts of a repository',
    description: 'The newest artifact comes first.',
    access: projectReader,
    query: Page,
    response: ArtifactCollection,
    handle: async ({ scope, params, query }, reply) =>
      sendInGroups(reply, await contents.listArtifacts(scope, params.registry_id, repositoryOf(params), query)),
  }),
  operation('DELETE', artifact, {
    id: 'deleteRegistryArtifact',
    summary: 'Delete an artifact of a repository',
    description: 'Deletes the artifact with its tags.',
    access: projectMember,
    handle: ({ by, scope, params }) =>
      contents.delete(by, scope, params.registry_id, { repository: repositoryOf(params), digest: params.digest }),
  }),
  operation('DELETE', `${artifact}/tags/:tag_name`, {
    id: 'deleteRegistryTag',
    summary: 'Delete a tag of an artifact',
    description: 'The artifact and its other tags are kept.',
    access: projectMember,
    handle: ({ by, scope, params }) => {
      const { registry_id, digest, tag_name: tag } = params;
      return contents.delete(by, scope, registry_id, { repository: repositoryOf(params), digest, tag });
    },
  }),
];
