/** The operations of the users of a registry. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { NumberOf } from '../../../http/path-parameters.ts';
import { operationsOf } from '../../../http/operations.ts';
import { Page } from '../../../http/shapes.ts';
import {
  CreateRegistryUser,
  CreateRegistryUsers,
  RegistryUser,
  RegistryUserCollection,
  RegistryUsersWithSecrets,
  RegistryUserWithSecret,
  UpdateRegistryUser,
} from '../schema.ts';
import { errorsOfUsers, type RegistryUsers } from './service.ts';

const tag = {
  name: 'Registry users',
  description:
    'Names and secrets with which container clients log in to a registry. A user can push and pull, or only pull if ' +
    '`read_only` is true, until it expires. Secrets are returned only by the operations that create them. Under the name ' +
    '`apikey`, clients can also log in with a token of this API. A registry has at most 1,000 users.',
};
const operation = operationsOf(tag, {
  registry_id: NumberOf('the registry'),
  user_id: NumberOf('the user of the registry'),
});
const all = '/cloud/v1/registries/:project_id/:region_id/:registry_id/users';
const one = `${all}/:user_id`;

export const registryUserOperations = (users: RegistryUsers) => [
  operation('POST', all, {
    id: 'createRegistryUser',
    summary: 'Create a user of a registry',
    description: 'The response contains the secret, which no other response repeats.',
    access: projectMember,
    body: CreateRegistryUser,
    response: RegistryUserWithSecret,
    status: 201,
    handle: ({ by, scope, params, body }) => users.create(by, scope, params.registry_id, body),
  }),
  operation('POST', `${all}/batch`, {
    id: 'createRegistryUsers',
    summary: 'Create several users of a registry',
    description: 'Creates all users or none. The response contains the secrets, which no other response repeats.',
    access: projectMember,
    body: CreateRegistryUsers,
    bodyErrors: errorsOfUsers,
    response: RegistryUsersWithSecrets,
    status: 201,
    handle: ({ by, scope, params, body }) => users.createMany(by, scope, params.registry_id, body.users),
  }),
  operation('GET', all, {
    id: 'listRegistryUsers',
    summary: 'List the users of a registry',
    description: 'The oldest user comes first.',
    access: projectReader,
    query: Page,
    response: RegistryUserCollection,
    handle: ({ scope, params, query }) => users.list(scope, params.registry_id, query),
  }),
  operation('PATCH', one, {
    id: 'updateRegistryUser',
    summary: 'Update a user of a registry',
    description: 'Changes when the user expires, and whether it may push.',
    access: projectMember,
    body: UpdateRegistryUser,
    response: RegistryUser,
    handle: ({ by, scope, params, body }) => users.update(by, scope, params.registry_id, params.user_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteRegistryUser',
    summary: 'Delete a user of a registry',
    description: 'The user cannot log in from now on. Clients that are logged in lose access within minutes.',
    access: projectMember,
    handle: ({ by, scope, params }) => users.delete(by, scope, params.registry_id, params.user_id),
  }),
  operation('POST', `${one}/refresh_secret`, {
    id: 'refreshRegistryUserSecret',
    summary: 'Replace the secret of a user of a registry',
    description: 'The response contains the new secret, which no other response repeats. The old one is refused.',
    access: projectMember,
    response: RegistryUserWithSecret,
    handle: ({ by, scope, params }) => users.refreshSecret(by, scope, params.registry_id, params.user_id),
  }),
];
