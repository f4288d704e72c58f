/**
 * The operations of a resource as a table: one entry states the method, path, operationId, summary, access, shapes and
 * handler of an operation. Routes, authorization, policy.txt and the OpenAPI document are derived from the entries.
 *
 *     const tag = { name: 'Volumes', description: 'Block storage that ...' };
 *     const operation = operationsOf(tag, { volume_id: IdOf('the volume') });
 *     export const volumeOperations = (volumes: Volumes) => [
 *       operation('GET', '/cloud/v1/volumes/:project_id/:region_id/:volume_id', {
 *         id: 'getVolume',
 *         summary: 'Get a volume',
 *         access: projectReader,
 *         response: Volume,
 *         handle: ({ scope, params }) => volumes.get(scope, params.volume_id),
 *       }),
 *     ];
 */
import type { FastifyReply, FastifyRequest, RouteOptions, RouteShorthandOptions } from 'fastify';
import { type Static, type TObject, type TSchema, Type } from 'typebox';
import type { Access } from '../authz/access.ts';
import type { ClientScope, RequestContext, Scope } from '../authz/actor.ts';
import type { FieldError } from '../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../errors/valid-fields.ts';
import type { Routes } from './app.ts';
import { pathParameters } from './path-parameters.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The access rule of the operation. The app does not start with a route that has none. */
    access?: Access;
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * The query of an operation that has no parameters. validation.ts rejects unknown parameters: a misspelt filter that is
 * ignored would return everything. A shape with `additionalProperties: true` ignores them.
 */
export const noQuery = Type.Object({});

type Shapes = Record<string, TSchema>;

type NamesIn<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

type Params<Path extends string, Own extends Shapes> = {
  [Name in NamesIn<Path>]: Name extends keyof Own
    ? Static<Own[Name]>
    : Name extends keyof typeof pathParameters
      ? Static<(typeof pathParameters)[Name]>
      : never;
};

/** The client of the token, and the project and region that the path names. */
type ScopeOf<Path extends string> = ClientScope &
  ('project_id' extends NamesIn<Path> ? Pick<Scope, 'projectId'> : unknown) &
  ('region_id' extends NamesIn<Path> ? Pick<Scope, 'regionId' | 'regionName'> : unknown);

type Valid<Shape extends TSchema | undefined> = Shape extends TSchema ? Static<Shape> : undefined;

interface OperationRequest<Path extends string, Own extends Shapes, Query, Body> {
  by: RequestContext;
  scope: ScopeOf<Path>;
  params: Params<Path, Own>;
  query: Query;
  body: Body;
}

interface OperationDefinition<
  Path extends string,
  Own extends Shapes,
  Query extends TSchema | undefined,
  Body extends TSchema | undefined,
  ResponseBody extends TSchema | undefined,
> {
  /** The operationId of the OpenAPI document, of logs and of metrics. */
  id: string;
  /** Imperative, without a full stop: "Create a volume". */
  summary: string;
  /** Markdown; adds to the summary. */
  description?: string;
  access: Access;
  /** Responses have the header `Deprecation: true`. */
  deprecated?: boolean;
  query?: Query;
  body?: Body;
  /**
   * The rules of the body that its shape cannot express and that need no database. Called only for invalid requests, so that the
   * response names all errors at once; the service checks valid ones. `params` is empty if one of them is invalid. `by` is
   * absent for public operations.
   */
  bodyErrors?(
    body: ValidFields<Valid<Body>>,
    isInvalid: IsInvalid,
    params: Partial<Params<Path, Own>>,
    by: RequestContext,
  ): FieldError[] | Promise<FieldError[]>;
  /** The shape of the response body. Without one the body is empty. */
  response?: ResponseBody;
  /**
   * The media types of the response; default: JSON. `response` is the shape of JSON, or of the parts of a stream; the description
   * of the operation says what other types contain.
   */
  produces?: string[];
  /** Default: 200 with `response`, 204 without it. With 302, the handler sends the response. */
  status?: 200 | 201 | 204 | 302;
  /** Options of Fastify that few routes need, such as `bodyLimit`. */
  route?: RouteShorthandOptions;
  handle(
    request: OperationRequest<Path, Own, Valid<Query>, Valid<Body>>,
    reply: FastifyReply,
  ): ResponseBody extends TSchema ? Static<ResponseBody> | Promise<Static<ResponseBody> | FastifyReply> : unknown;
}

/** Groups operations in the API reference. */
export interface OperationTag {
  name: string;
  /** Markdown: the resource, its states and its formats. */
  description: string;
}

/**
 * Makes the function that declares the operations of one resource; an operation registers its route. `parameters` are the
 * shapes of the path parameters that only this resource has; `project_id`, `region_id` and `client_id` are known
 * (path-parameters.ts).
 * @throws Error for a path parameter without a shape
 */
export function operationsOf<const Own extends Shapes = Record<never, never>>(
  tag: OperationTag,
  parameters: Own = {} as Own,
) {
  return <
    const Path extends string,
    Query extends TSchema | undefined = undefined,
    Body extends TSchema | undefined = undefined,
    ResponseBody extends TSchema | undefined = undefined,
  >(
    method: Method,
    path: Path,
    definition: OperationDefinition<Path, Own, Query, Body, ResponseBody>,
  ): Routes => {
    const { id, summary, description, access, deprecated, query, body, bodyErrors } = definition;
    const { response, produces, route } = definition;
    const status = definition.status ?? (response ? 200 : 204);
    const params = shapeOfPath(path, parameters);
    const schema = {
      ...{ operationId: id, summary, tags: [tag.name] },
      ...(description && { description }),
      ...(deprecated && { deprecated }),
      ...(access.reach === 'public' && { security: [] }),
      ...(params && { params }),
      ...(produces && { produces }),
      querystring: query ?? noQuery,
      ...(body && { body }),
      response: { [status]: response ?? Type.Null({ description: status === 302 ? 'Redirect' : 'No content' }) },
    };
    return (app) => {
      app.declaredTags.set(tag.name, tag.description);
      app.route({
        ...route,
        method,
        url: path,
        config: { ...route?.config, access, bodyErrors },
        schema,
        // Not async: a promise for each request would cost a tenth of a small response.
        handler: (request: FastifyRequest, reply: FastifyReply): any => {
          reply.code(status);
          const result = definition.handle(request as never, reply);
          // Fastify sends null as `null`, and undefined as an empty body.
          return response || status === 302 ? result : Promise.resolve(result).then(() => reply.send());
        },
      } as RouteOptions);
    };
  };
}

/** By the names of the parameters. A shape that operations share is compiled once. */
const shapesOfPaths = new Map<string, TObject>();

function shapeOfPath(path: string, own: Shapes): TObject | undefined {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
  if (names.length === 0) return undefined;
  const shapes: Shapes = { ...pathParameters, ...own };
  const missing = names.find((name) => !shapes[name]);
  if (missing !== undefined) throw new Error(`${path}: path parameter ${missing} has no shape`);
  const key = names.join();
  const known = shapesOfPaths.get(key);
  if (known && names.every((name) => known.properties[name] === shapes[name])) return known;
  const shape = Type.Object(Object.fromEntries(names.map((name) => [name, shapes[name]!])));
  shapesOfPaths.set(key, shape);
  return shape;
}
