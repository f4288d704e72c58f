/** The HTTP operations of API keys, and what proxies ask. */
import { parse } from 'node:querystring';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { App, Routes } from '../../http/app.ts';
import { declaresBody } from '../../http/connection-limits.ts';
import type { QuickAnswer } from '../../http/connection-limits.ts';
import { ProjectRegion } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import {
  ApiKey,
  ApiKeyCollection,
  ApiKeyPath,
  AuthorizePath,
  AuthorizeQuery,
  CreateApiKey,
  CreatedApiKey,
  ListApiKeys,
  UpdateApiKey,
} from './schema.ts';
import type { ContainerRequest } from './key-cache.ts';
import type { ApiKeys } from './service.ts';

const tags = ['API keys'];
const all = '/cloud/v1/caas/keys/:project_id/:region_id';
const one = `${all}/:key_name`;
const authorize = '/cloudyard/v1/authorize';
/** 10,000 containers with the longest names, 3.5 MB, and the rest. */
const bodyLimit = 4 * 1024 * 1024;

export function apiKeyRoutes(apiKeys: ApiKeys): Routes {
  return (app) => {
    app.post(
      all,
      {
        bodyLimit,
        schema: {
          operationId: 'createApiKey',
          summary: 'Create an API key; its secret is shown here only',
          tags,
          params: ProjectRegion,
          body: CreateApiKey,
          response: { 200: CreatedApiKey },
        },
      },
      (request) => apiKeys.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          operationId: 'listApiKeys',
          summary: 'List API keys by name',
          tags,
          params: ProjectRegion,
          querystring: ListApiKeys,
          response: { 200: ApiKeyCollection },
        },
      },
      async (request, reply) => {
        const { count, keys } = await apiKeys.list(request.scope, request.query);
        return sendInGroups(reply, { count, results: keys });
      },
    );

    app.get(
      one,
      {
        schema: {
          operationId: 'getApiKey',
          summary: 'Get an API key',
          tags,
          params: ApiKeyPath,
          response: { 200: ApiKey },
        },
      },
      (request) => apiKeys.get(request.scope, request.params.key_name),
    );

    app.patch(
      one,
      {
        bodyLimit,
        schema: {
          operationId: 'updateApiKey',
          summary: 'Change what an API key opens, and until when',
          tags,
          params: ApiKeyPath,
          body: UpdateApiKey,
          response: { 200: ApiKey },
        },
      },
      (request) => apiKeys.update(request.by, request.scope, request.params.key_name, request.body),
    );

    app.delete(
      one,
      {
        schema: {
          operationId: 'deleteApiKey',
          summary: 'Delete an API key; it opens nothing from then on',
          tags,
          params: ApiKeyPath,
          response: { 204: Type.Null() },
        },
      },
      async (request, reply) => {
        await apiKeys.delete(request.by, request.scope, request.params.key_name);
        return reply.code(204).send(null);
      },
    );
  };
}

/**
 * What proxies ask before they let a request through to a container; docs/forward-auth.md has their configurations. They
 * pass on the client's request, so its method and what it carries must not matter.
 */
export function authorizeRoutes(apiKeys: ApiKeys): Routes {
  return (app) => {
    app.register(async (scoped) => {
      scoped.removeAllContentTypeParsers();
      scoped.addContentTypeParser('*', (_request, body, done) => (body.resume(), done(null, undefined)));
      // A proxy may pass on the length of a body that it does not send. What it sends next must not be taken for the body.
      scoped.addHook('onRequest', (request, reply, done) => {
        if (declaresBody(request)) reply.header('connection', 'close');
        done();
      });
      authorizeByQuery(scoped as unknown as App, apiKeys);
      authorizeByPath(scoped as unknown as App, apiKeys);
    });
  };
}

/**
 * A proxy waits for these before each request of its clients. What they carry is not validated: a name that is none is in
 * no key's list, and proxies take a 400 for a fault of ours.
 */
const unhindered = {
  config: { quiet: true },
  validatorCompiler: () => () => true,
  childLoggerFactory: (logger: FastifyBaseLogger) => logger,
};

const byQuery = `${authorize}?`;
/** Plain text only: what is encoded goes the ordinary way. */
const byPath = new RegExp(`^${authorize}/(\\d+)/(\\d+)/([\\w.-]+)/([a-z0-9-]+)(?:[/?]|$)`);

/**
 * Says yes before the framework hears of the request, which would take most of the time. What is not plainly a yes goes
 * the ordinary way (`authorizeRoutes`): both decide by `refusal` of the gate.
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

/** The query says which container, or the headers where there is no query. */
function authorizeByQuery(app: App, apiKeys: ApiKeys): void {
  app.get(
    authorize,
    {
      ...unhindered,
      schema: {
        operationId: 'authorizeContainer',
        summary: 'Tell a proxy whether the X-API-Key of a request opens a container',
        description:
          'The query says which container, or without one the headers X-Container-Name, X-Container-Namespace, ' +
          'X-Container-Project and X-Container-Region. 401 and 403 give the reason in the header X-Cloudyard-Reason.',
        tags,
        security: [],
        querystring: AuthorizeQuery,
        response: { 204: Type.Null() },
      },
    },
    (request, reply) => {
      // With anything behind our path, the query is of the proxy's client: see below.
      const { url } = request;
      const isOurs = url.length === authorize.length || url[authorize.length] === '?';
      apiKeys.authorize(header(request, 'x-api-key'), isOurs ? containerOf(request, request.query) : {});
      reply.code(204).send(null);
    },
  );
}

/**
 * For Envoy, which puts the path of the client's request behind ours, keeps its method, and takes nothing but 200 for
 * yes. What stands behind the container is not looked at, and neither are query and headers: they are the client's.
 */
function authorizeByPath(app: App, apiKeys: ApiKeys): void {
  const path = `${authorize}/:project_id/:region_id/:namespace/:name`;
  const route = (method: string[], url: string, hide: boolean) =>
    app.route({
      method,
      url,
      ...unhindered,
      schema: {
        operationId: 'authorizeContainerByPath',
        summary: 'The same for a container that the path names, whatever the method and whatever follows',
        tags,
        security: [],
        hide,
        params: AuthorizePath,
        response: { 200: Type.Null() },
      },
      handler: (request, reply) => {
        apiKeys.authorize(header(request, 'x-api-key'), containerInQuery(request.params));
        reply.code(200).send(undefined as never);
      },
    });
  const others = ['DELETE', 'OPTIONS', 'PATCH', 'POST', 'PUT'];
  route(['GET'], path, false);
  route(others, path, true);
  route(['GET', ...others], `${path}/*`, true);
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

/** Not validated, so all is text, or a list of texts. */
function containerInQuery({ name, namespace, project_id, region_id }: AuthorizeQuery): ContainerRequest {
  return { name, namespace, projectId: numberIn(project_id), regionId: numberIn(region_id) };
}

function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** What is no number is the number of no project; nor is what is empty, as a proxy's variable may be by mistake. */
function numberIn(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  return typeof given === 'string' && /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
}
