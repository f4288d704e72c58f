/** The operations of API keys, and the operations with which proxies verify them. */
import { parse } from 'node:querystring';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { everyone, projectMember, projectReader } from '../../authz/access.ts';
import type { App, Routes } from '../../http/app.ts';
import { declaresBody, type QuickAnswer } from '../../http/connection-limits.ts';
import { operationsOf } from '../../http/operations.ts';
import { Described, Page } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import type { ContainerRequest } from './key-cache.ts';
import {
  ApiKey,
  ApiKeyCollection,
  AuthorizeQuery,
  CreateApiKey,
  CreatedApiKey,
  Namespace,
  PlatformName,
  UpdateApiKey,
} from './schema.ts';
import type { ApiKeys } from './service.ts';

const tag = {
  name: 'API keys',
  description:
    'Keys that guard containers behind a proxy. A client sends the secret of a key in the header `X-API-Key`; the proxy ' +
    'calls `authorize`, which decides whether the key opens the container. The secret is returned only when the key is ' +
    'created.\n\n' +
    '| `status` | Meaning |\n|---|---|\n' +
    '| `active` | the key opens its containers |\n' +
    '| `disabled` | `is_disabled` is true |\n' +
    '| `expired` | `expire` has passed |\n' +
    '| `pending` | the server has not read the key yet |',
};
const operation = operationsOf(tag, {
  key_name: Described(PlatformName, 'Name of the API key', 'first-key'),
  namespace: Described(Namespace, 'Namespace of the container', 'default'),
  name: Described(PlatformName, 'Name of the container', 'web'),
});
const all = '/cloud/v1/caas/keys/:project_id/:region_id';
const one = `${all}/:key_name`;
const authorize = '/cloudyard/v1/authorize';
const containerPath = `${authorize}/:project_id/:region_id/:namespace/:name` as const;
/** Bytes: 10,000 containers with the longest names are 3.5 MB. */
const route = { bodyLimit: 4 * 1024 * 1024 };

export const apiKeyRoutes = ({ apiKeys }: { apiKeys: ApiKeys }): Routes[] => [
  ...apiKeyOperations(apiKeys),
  authorizeRoutes(apiKeys),
];

const apiKeyOperations = (apiKeys: ApiKeys) => [
  operation('POST', all, {
    id: 'createApiKey',
    summary: 'Create an API key',
    description: 'The response contains the secret, which no other response repeats.',
    access: projectMember,
    body: CreateApiKey,
    bodyErrors: apiKeys.bodyErrors,
    response: CreatedApiKey,
    route,
    handle: ({ by, scope, body }) => apiKeys.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listApiKeys',
    summary: 'List API keys',
    description: 'Sorted by name.',
    access: projectReader,
    query: Page,
    response: ApiKeyCollection,
    handle: async ({ scope, query }, reply) => {
      const { count, keys } = await apiKeys.list(scope, query);
      return sendInGroups(reply, { count, results: keys });
    },
  }),
  operation('GET', one, {
    id: 'getApiKey',
    summary: 'Get an API key',
    access: projectReader,
    response: ApiKey,
    handle: ({ scope, params }) => apiKeys.get(scope, params.key_name),
  }),
  operation('PATCH', one, {
    id: 'updateApiKey',
    summary: 'Update an API key',
    description: 'Changes the containers, the description and the expiry, or disables and enables the key.',
    access: projectMember,
    body: UpdateApiKey,
    bodyErrors: apiKeys.errorsOfUpdate,
    response: ApiKey,
    route,
    handle: ({ by, scope, params, body }) => apiKeys.update(by, scope, params.key_name, body),
  }),
  operation('DELETE', one, {
    id: 'deleteApiKey',
    summary: 'Delete an API key',
    description: 'Servers reject the key from now on.',
    access: projectMember,
    handle: ({ by, scope, params }) => apiKeys.delete(by, scope, params.key_name),
  }),
];

/**
 * Proxies call these before they forward a request to a container (docs/forward-auth.md). They forward the request of
 * their client, so its method, body and headers must not matter.
 */
function authorizeRoutes(apiKeys: ApiKeys): Routes {
  return (app) => {
    app.register(async (scoped) => {
      scoped.removeAllContentTypeParsers();
      scoped.addContentTypeParser('*', (_request, body, done) => (body.resume(), done(null, undefined)));
      // A proxy may forward the length of a body that it does not send. Its next request must not be read as that body.
      scoped.addHook('onRequest', (request, reply, done) => {
        if (declaresBody(request)) reply.header('connection', 'close');
        done();
      });
      for (const register of authorizeOperations(apiKeys)) register(scoped as unknown as App);
      authorizeAnyRequest(scoped as unknown as App, apiKeys);
    });
  };
}

/**
 * A proxy waits for the answer before each request of its clients, so these routes do as little as possible. Input is
 * not validated: an invalid name is in the list of no key, and proxies treat a 400 as an error of this server.
 */
const unchecked = {
  config: { quiet: true },
  validatorCompiler: () => () => true,
  childLoggerFactory: (logger: FastifyBaseLogger) => logger,
};

const byQuery = `${authorize}?`;
/** Unencoded text only; encoded paths take the ordinary route. */
const byPath = new RegExp(`^${authorize}/(\\d+)/(\\d+)/([\\w.-]+)/([a-z0-9-]+)(?:[/?]|$)`);

/**
 * Accepts a request before Fastify sees it, which would take most of the time. Every other request takes the ordinary
 * route (`authorizeRoutes`), which decides by the same rules.
 */
export function authorizeQuickly(apiKeys: ApiKeys): QuickAnswer {
  return ({ method, url = '', headers }, response) => {
    if (method !== 'GET' || !url.startsWith(authorize)) return false;
    const key = headers['x-api-key'] as string | undefined;
    if (url.startsWith(byQuery)) {
      const query = parse(url.slice(byQuery.length));
      if (query['name'] === undefined || !apiKeys.opens(key, containerInQuery(query as AuthorizeQuery))) return false;
      response.writeHead(204).end();
      return true;
    }
    const [, projectId, regionId, namespace, name] = byPath.exec(url) ?? [];
    if (!apiKeys.opens(key, { name, namespace, projectId: Number(projectId), regionId: Number(regionId) }))
      return false;
    response.writeHead(200, { 'content-length': 0 }).end();
    return true;
  };
}

const authorizeOperations = (apiKeys: ApiKeys) => [
  operation('GET', authorize, {
    id: 'authorizeContainer',
    summary: 'Authorize a request to a container',
    description:
      'For proxies. The status is 204 if the key in the header `X-API-Key` opens the container; 401 and 403 have the reason ' +
      'in the header `X-Cloudyard-Reason`. The query names the container; without `name`, the headers `X-Container-Name`, ' +
      '`X-Container-Namespace`, `X-Container-Project` and `X-Container-Region` do.',
    access: everyone,
    query: AuthorizeQuery,
    status: 204,
    route: unchecked,
    handle: ({ query }, { request }) => {
      // If the proxy appended its own path, the query is that of its client: see below.
      const { url } = request;
      const isOurs = url.length === authorize.length || url[authorize.length] === '?';
      apiKeys.authorize(header(request, 'x-api-key'), isOurs ? containerOf(request, query) : {});
    },
  }),
  operation('GET', containerPath, {
    id: 'authorizeContainerByPath',
    summary: 'Authorize a request to a container in the path',
    description:
      'For proxies that append the path of their client, such as Envoy. Other methods and longer paths have the same ' +
      'effect. The status is 200 if the key in the header `X-API-Key` opens the container; 401 and 403 have the reason in ' +
      'the header `X-Cloudyard-Reason`.',
    access: everyone,
    status: 200,
    route: unchecked,
    handle: ({ params }, { request }) => apiKeys.authorize(header(request, 'x-api-key'), containerInQuery(params)),
  }),
];

/**
 * For Envoy, which appends the path of its client's request to this path, keeps the method, and accepts only the status
 * 200. The rest of the path, the query and the headers are those of the client, and are ignored.
 */
function authorizeAnyRequest(app: App, apiKeys: ApiKeys): void {
  const others = ['DELETE', 'OPTIONS', 'PATCH', 'POST', 'PUT'];
  const add = (method: string[], url: string) =>
    app.route({
      method,
      url,
      ...unchecked,
      config: { ...unchecked.config, access: everyone },
      schema: { operationId: 'authorizeContainerByPath', hide: true },
      handler: (request, reply) => {
        apiKeys.authorize(header(request, 'x-api-key'), containerInQuery(request.params as AuthorizeQuery));
        reply.code(200).send();
      },
    });
  add(others, containerPath);
  add(['GET', ...others], `${containerPath}/*`);
}

function containerOf(request: FastifyRequest, query: AuthorizeQuery): ContainerRequest {
  if (query.name !== undefined) return containerInQuery(query);
  return {
    name: header(request, 'x-container-name'),
    namespace: header(request, 'x-container-namespace'),
    projectId: numberIn(header(request, 'x-container-project')),
    regionId: numberIn(header(request, 'x-container-region')),
  };
}

/** The input is not validated: each field is text or a list of texts. */
function containerInQuery({ name, namespace, project_id, region_id }: AuthorizeQuery): ContainerRequest {
  return { name, namespace, projectId: numberIn(project_id), regionId: numberIn(region_id) };
}

function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** NaN matches no project. Empty text is not a number: a variable of the proxy may be empty by mistake. */
function numberIn(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  return typeof given === 'string' && /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
}
