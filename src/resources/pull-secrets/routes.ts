/** The operations of pull secrets. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { Described, Page } from '../../http/shapes.ts';
import {
  CreatePullSecret,
  DockerConfigJson,
  PullSecret,
  PullSecretCollection,
  PullSecretName,
  UpdatePullSecret,
  Verification,
} from './schema.ts';
import type { PullSecrets } from './service.ts';

const tag = {
  name: 'Pull secrets',
  description:
    'Logins to container registries, stored encrypted. The password is returned only by `dockerconfigjson`, the file with ' +
    'which skopeo, Podman and Kubernetes pull images.',
};
const operation = operationsOf(tag, {
  secret_name: Described(PullSecretName, 'Name of the pull secret', 'my-registry'),
});
const all = '/cloud/v1/caas/secrets/:project_id/:region_id';
const one = `${all}/:secret_name`;
/** Operations that only Cloudyard has. */
const own = '/cloudyard/v1/caas/secrets/:project_id/:region_id/:secret_name';

export const pullSecretOperations = ({ pullSecrets }: { pullSecrets: PullSecrets }) => [
  operation('POST', all, {
    id: 'createPullSecret',
    summary: 'Create a pull secret',
    description: 'The login is not verified.',
    access: projectMember,
    body: CreatePullSecret,
    bodyErrors: pullSecrets.bodyErrors,
    response: PullSecret,
    handle: ({ by, scope, body }) => pullSecrets.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listPullSecrets',
    summary: 'List pull secrets',
    description: 'Sorted by name, without passwords.',
    access: projectReader,
    query: Page,
    response: PullSecretCollection,
    handle: ({ scope, query }) => pullSecrets.list(scope, query),
  }),
  operation('GET', one, {
    id: 'getPullSecret',
    summary: 'Get a pull secret',
    description: 'The response does not contain the password.',
    access: projectReader,
    response: PullSecret,
    handle: ({ scope, params }) => pullSecrets.get(scope, params.secret_name),
  }),
  operation('PATCH', one, {
    id: 'updatePullSecret',
    summary: 'Update a pull secret',
    access: projectMember,
    body: UpdatePullSecret,
    bodyErrors: pullSecrets.bodyErrors,
    response: PullSecret,
    handle: ({ by, scope, params, body }) => pullSecrets.update(by, scope, params.secret_name, body),
  }),
  operation('DELETE', one, {
    id: 'deletePullSecret',
    summary: 'Delete a pull secret',
    access: projectMember,
    handle: ({ by, scope, params }) => pullSecrets.delete(by, scope, params.secret_name),
  }),
  operation('POST', `${own}/verify`, {
    id: 'verifyPullSecret',
    summary: 'Verify a pull secret',
    description: 'Logs in to the registry and returns the result. An audit entry records the use of the password.',
    access: projectMember,
    response: Verification,
    handle: ({ by, scope, params }) => pullSecrets.verify(by, scope, params.secret_name),
  }),
  operation('GET', `${own}/dockerconfigjson`, {
    id: 'getPullSecretDockerConfigJson',
    summary: 'Get the Docker configuration of a pull secret',
    description:
      'The file `config.json` of Docker, which skopeo, Podman and Kubernetes also read. It contains the password. An audit ' +
      'entry records the request.',
    access: projectMember,
    response: DockerConfigJson,
    handle: ({ by, scope, params }, reply) => {
      reply.header('cache-control', 'no-store');
      return pullSecrets.dockerConfigJson(by, scope, params.secret_name);
    },
  }),
];
