/**
 * Authenticates and authorizes every request: the token or the session cookie (401), its role (403), then the project, region
 * or client of the path (404 if it does not exist or belongs to another client; 403 if the token is limited to other projects).
 *
 * Invariant: every route declares its access; otherwise the app does not start.
 */
import type { FastifyRequest, RouteOptions } from 'fastify';
import { type Actor, atLeast, type RequestFacts } from '../authz/actor.ts';
import { type Access, concernsAllProjects, seesAllClients } from '../authz/access.ts';
import { ClientError, notFound } from '../errors/catalogue.ts';
import { type MaybePromise, whenKnown } from '../platform/maybe-promise.ts';
import { methodNotAllowed } from './allowed-methods.ts';
import type { AnonymousLimit } from './anonymous-limit.ts';
import type { App } from './app.ts';
import { requireCsrfToken, requireSameOrigin, sessionOf } from './session-cookie.ts';

/** Checks credentials of one kind. */
interface Authenticator {
  /** The caller; null for a credential that is unknown, expired or revoked. */
  authenticate(credential: string): MaybePromise<Actor | null>;
  /** As `authenticate`, but not a use: for a stream that outlives its request. */
  check(credential: string): MaybePromise<Actor | null>;
  /** Whether this server has accepted the credential before; reads memory only. */
  recognizes(credential: string): boolean;
}

export interface AuthorizationDeps {
  tokens: Authenticator;
  /** Credentials are the values of session cookies. */
  sessions: Authenticator;
  /** The URL that browsers use, if a proxy changes the header `Host`. */
  publicUrl?: string | undefined;
  /** The client of a project; null if the project does not exist. */
  clientOfProject(projectId: number): MaybePromise<number | null>;
  regionName(regionId: number): string | null;
}

/** A line of policy.txt. */
export interface DeclaredOperation {
  operationId: string;
  method: string;
  path: string;
  access: Access;
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Every registered route except hidden routes and automatic HEAD routes. */
    declaredOperations: DeclaredOperation[];
  }
}

/** Adds the hooks. Call it before routes are registered, each of which must declare its access. */
export function authorization(app: App, deps: AuthorizationDeps): void {
  app.decorate('declaredOperations', []);
  app.decorate('publicUrl', deps.publicUrl);
  app.addHook('onRoute', (route) => declare(app.declaredOperations, route));

  // Callbacks, because public operations are the most frequent: see telemetry.ts.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) return done(noRoute(request));
    const access = accessOf(request);
    if (access.reach === 'public') return countPublic(app.anonymousLimit, request, done);
    finish(app, () => authenticate(deps, request, access), done);
  });

  app.addHook('preHandler', (request, _reply, done) => {
    const access = accessOf(request);
    if (access.reach === 'public') return done();
    finish(app, () => resolveScope(deps, request, access), done);
  });
}

/** Calls `done` in the same turn if `work` returns no promise, as it does for a known token and project. */
function finish({ timeLimit }: App, work: () => MaybePromise<void>, done: (error?: Error) => void): void {
  let pending: MaybePromise<void>;
  try {
    pending = work();
  } catch (error) {
    return done(error as Error);
  }
  if (pending instanceof Promise) timeLimit.limit(pending).then(() => done(), done);
  else done();
}

/** @throws Error for a route without access */
function declare(declared: DeclaredOperation[], route: RouteOptions): void {
  const operationId = route.schema?.operationId;
  const access = route.config?.access;
  const method = String(route.method);
  if (!access) throw new Error(`${method} ${route.url} declares no access`);
  if (method === 'HEAD' || route.schema?.hide || operationId === undefined) return;
  declared.push({ operationId, method, path: route.url, access });
}

/** Limits the requests of each address to public operations that are not free. */
function countPublic(limit: AnonymousLimit, request: FastifyRequest, done: (error?: Error) => void): void {
  if (!request.route.config.isCounted) return done();
  if (limit.isReached('public', request.ip)) return done(limit.refusal());
  limit.add('public', request.ip);
  done();
}

/** @throws ClientError 401, 403, 429 */
function authenticate(deps: AuthorizationDeps, request: FastifyRequest, access: Access): MaybePromise<void> {
  const limit = request.server.anonymousLimit;
  const token = tokenOf(request);
  const cookie = token === null ? sessionOf(request) : null;
  const credential = token ?? cookie;
  const authenticator = token === null ? deps.sessions : deps.tokens;
  if (limit.isReached('failed', request.ip) && !(credential && authenticator.recognizes(credential))) {
    throw limit.refusal();
  }
  if (cookie !== null) requireSameOrigin(request);
  const accept = (actor: Actor | null) => {
    if (!actor) {
      limit.add('failed', request.ip);
      throw unauthenticated(reasonOf(token, cookie));
    }
    if (cookie !== null) requireCsrfToken(request, cookie);
    const recheck = { text: credential!, check: () => authenticator.check(credential!) };
    request.by = { actor, requestId: request.id, credential: recheck };
    requireAccess(request, actor, access);
  };
  return !credential ? accept(null) : whenKnown(authenticator.authenticate(credential), accept);
}

/** @throws ClientError 403 */
function requireAccess(request: FastifyRequest, actor: Actor, access: Access): void {
  // A read that any reader may do has no entry in the audit log; one that shows a secret has.
  const isAudited = request.method !== 'GET' || access.role !== 'reader';
  if (isAudited) request.by.request = factsOf(request);
  if (!atLeast(actor, access.role)) {
    throw new ClientError('Forbidden', `requires the role ${access.role}; the token has the role ${actor.role}`);
  }
  if (access.reach === 'operator' && !actor.operator) {
    throw new ClientError('Forbidden', 'only the operator may call this operation');
  }
  if (actor.projectIds && concernsAllProjects(access)) {
    throw new ClientError(
      'Forbidden',
      'this operation affects all projects of the client; the token is limited to some of them',
    );
  }
}

function reasonOf(token: string | null, cookie: string | null): string {
  if (token !== null) return 'the token is unknown, expired or revoked';
  if (cookie !== null) return 'the session has ended; sign in again';
  return 'send the header `Authorization: apikey <id>$<secret>`';
}

/** Resolves the client, project and region of the path. @throws ClientError 403, 404 */
function resolveScope(deps: AuthorizationDeps, request: FastifyRequest, access: Access): MaybePromise<void> {
  const { actor } = request.by;
  const path = request.params as { project_id?: number; region_id?: number; client_id?: number };
  if (access.reach === 'client') requireClient(actor, path.client_id!);
  const resolve = (projectId?: number) => {
    const scope: FastifyRequest['scope'] = { clientId: path.client_id ?? actor.clientId };
    if (projectId !== undefined) scope.projectId = projectId;
    if (path.region_id !== undefined) {
      scope.regionId = path.region_id;
      scope.regionName = requireRegion(deps, path.region_id);
    }
    request.scope = scope;
    if (request.by.request) request.by.request.scope = scope;
  };
  if (access.reach !== 'project') return resolve();
  const projectId = path.project_id!;
  return whenKnown(deps.clientOfProject(projectId), (clientId) => {
    requireProject(actor, projectId, clientId);
    resolve(projectId);
  });
}

const developmentPath = '/cloudyard/v1/dev/';

/** Thrown before the body is read. */
function noRoute(request: FastifyRequest): ClientError {
  const refusal = methodNotAllowed(request);
  if (refusal) return refusal;
  const { method, url } = request;
  const hint = url.startsWith(developmentPath) ? '; development mode needs the setting CLOUDYARD_DEV=1' : '';
  return new ClientError('NotFound', `no such operation: ${method} ${url.split('?')[0]}${hint}`);
}

function accessOf(request: FastifyRequest): Access {
  return request.route.config.access!;
}

const maxHeaderLength = 200;

/** For the audit log. Headers that the client controls are truncated. */
export function factsOf(request: FastifyRequest): RequestFacts {
  const { headers } = request;
  const header = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const userAgent = header('user-agent')?.slice(0, maxHeaderLength);
  // Each proxy appends an address, so the end is trustworthy and the beginning comes from the client.
  const forwardedFor = header('x-forwarded-for')?.slice(-maxHeaderLength);
  return {
    operation: request.route.schema!.operationId!,
    origin: {
      address: request.ip,
      method: request.method,
      path: request.url.split('?', 1)[0]!,
      ...(forwardedFor && { forwarded_for: forwardedFor }),
      ...(userAgent && { user_agent: userAgent }),
    },
  };
}

/** The scheme `apikey` is case-insensitive: some clients send `APIKey`. */
function tokenOf(request: FastifyRequest): string | null {
  return /^apikey +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? null;
}

/** 401 that names the scheme of tokens. */
export function unauthenticated(message: string): ClientError {
  return new ClientError('Unauthenticated', message, { headers: { 'www-authenticate': 'apikey' } });
}

function requireClient(actor: Actor, clientId: number): void {
  if (clientId === actor.clientId || seesAllClients(actor)) return;
  throw notFound('client', clientId);
}

function requireProject(actor: Actor, projectId: number, clientId: number | null): void {
  if (clientId !== actor.clientId) throw notFound('project', projectId);
  if (actor.projectIds && !actor.projectIds.includes(projectId)) {
    throw new ClientError('Forbidden', `the token has no access to project ${projectId}`);
  }
}

function requireRegion(deps: AuthorizationDeps, regionId: number): string {
  const name = deps.regionName(regionId);
  if (name === null) throw notFound('region', regionId);
  return name;
}
