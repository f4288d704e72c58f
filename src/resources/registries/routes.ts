/** The operations of registries. */
import { projectMember, projectReader } from '../../authz/access.ts';
import type { Routes } from '../../http/app.ts';
import { NumberOf } from '../../http/path-parameters.ts';
import { operationsOf } from '../../http/operations.ts';
import { Page } from '../../http/shapes.ts';
import { registryContentsOperations } from './contents/routes.ts';
import {
  CheckRegistryLimits,
  CreateRegistry,
  Registry,
  RegistryCollection,
  RegistryRequiredQuota,
  ResizeRegistry,
} from './schema.ts';
import type { Registries } from './service.ts';
import { registryHostRoutes } from './token-server/routes.ts';
import { registryUserOperations } from './users/routes.ts';

const tag = {
  name: 'Registries',
  description:
    'Private registries of container images. A registry is ready as soon as it is created, and has no tasks. An image is ' +
    'named `<url>/<repository>:<tag>`, where `url` is that of the registry. Create a user, then push and pull:\n\n' +
    '```sh\n' +
    'docker login 127.0.0.1:5000 -u <user> -p <secret>\n' +
    'docker tag app 127.0.0.1:5000/images-1/team/app:v1\n' +
    'docker push 127.0.0.1:5000/images-1/team/app:v1\n' +
    '```\n\n' +
    'The first push creates the repository. A registry whose `storage_used` reaches its `storage_limit` rejects pushes; ' +
    'pulls and deletions still work. Quotas: `registry_count` and `registry_storage` (GiB, the sum of the limits).',
};
const operation = operationsOf(tag, { registry_id: NumberOf('the registry') });
const all = '/cloud/v1/registries/:project_id/:region_id';
const one = `${all}/:registry_id`;

export const registryRoutes = ({ registries }: { registries: Registries }): Routes[] => [
  ...registryOperations(registries),
  ...registryUserOperations(registries.users),
  ...registryContentsOperations(registries.contents),
  registryHostRoutes(registries.tokenServer, registries.events),
];

const registryOperations = (registries: Registries) => [
  operation('POST', all, {
    id: 'createRegistry',
    summary: 'Create a registry',
    access: projectMember,
    body: CreateRegistry,
    response: Registry,
    status: 201,
    handle: ({ by, scope, body }) => registries.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listRegistries',
    summary: 'List registries',
    description: 'The oldest registry comes first.',
    access: projectReader,
    query: Page,
    response: RegistryCollection,
    handle: ({ scope, query }) => registries.list(scope, query),
  }),
  operation('GET', one, {
    id: 'getRegistry',
    summary: 'Get a registry',
    access: projectReader,
    response: Registry,
    handle: ({ scope, params }) => registries.get(scope, params.registry_id),
  }),
  operation('DELETE', one, {
    id: 'deleteRegistry',
    summary: 'Delete a registry',
    description: 'Deletes the registry with its users and images. The response is sent when the images are deleted.',
    access: projectMember,
    handle: ({ by, scope, params }) => registries.delete(by, scope, params.registry_id),
  }),
  operation('PATCH', `${one}/resize`, {
    id: 'resizeRegistry',
    summary: 'Change the storage limit of a registry',
    description: 'A limit below `storage_used` deletes nothing; it only rejects pushes.',
    access: projectMember,
    body: ResizeRegistry,
    response: Registry,
    handle: ({ by, scope, params, body }) => registries.resize(by, scope, params.registry_id, body.storage_limit),
  }),
  operation('POST', `${all}/check_limits`, {
    id: 'checkRegistryLimits',
    summary: 'Check the quota for a new registry',
    description:
      'Lists the quotas that a new registry with this limit would exceed; the response is empty if there are none.',
    access: projectReader,
    body: CheckRegistryLimits,
    response: RegistryRequiredQuota,
    handle: ({ scope, body }) => registries.checkLimits(scope, body.storage_limit ?? 0),
  }),
];
