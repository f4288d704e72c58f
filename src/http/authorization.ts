/**
 * Lets a request in: the token (401), its role (403), then the project, region or client of the path (404 when it is
 * not there or not visible to the token's client; 403 when the token is limited to other projects).
 */
import type { FastifyRequest } from 'fastify';
import { atLeast } from '../authz/actor.ts';
import type { Actor, RequestFacts } from '../authz/actor.ts';
import { policy } from '../authz/policy.ts';
import type { Operation, Rule } from '../authz/policy.ts';
import { ClientError, notFound } from '../errors/catalogue.ts';
import type { AnonymousLimit } from './anonymous-limit.ts';
import type { App } from './app.ts';

export interface AuthorizationDeps {
  /** Who the token belongs to; null when it is unknown, expired or revoked. */
  authenticate(token: string): Promise<Actor | null>;
  /** Whether the token was valid before, from memory. */
  recognizes(token: string): boolean;
  /** The client of a live project; null when there is none. */
  clientOfProject(projectId: number): Promise<number | null>;
  regionName(regionId: number): string | null;
}

export function authorization(app: App, deps: AuthorizationDeps): void {
  // With callbacks, because what is public is asked most: see telemetry.ts.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) return done(noRoute(request));
    const rule = ruleOf(request);
    if (!rule || rule.reach === 'public') return countPublic(app.anonymousLimit, request, done);
    letIn(deps, request, rule).then(() => done(), done);
  });

  app.addHook('preHandler', (request, _reply, done) => {
    const rule = ruleOf(request);
    if (!rule || rule.reach === 'public') return done();
    letTo(deps, request, rule).then(() => done(), done);
  });
}

/** Public operations that cost something are limited for each address. */
function countPublic(limit: AnonymousLimit, request: FastifyRequest, done: (error?: Error) => void): void {
  if (!request.routeOptions.config.isCounted) return done();
  if (limit.isReached('public', request.ip)) return done(limit.refusal());
  limit.add('public', request.ip);
  done();
}

/** @throws ClientError 401, 403, 429 */
async function letIn(deps: AuthorizationDeps, request: FastifyRequest, rule: Rule): Promise<void> {
  const limit = request.server.anonymousLimit;
  const token = tokenOf(request);
  if (limit.isReached('failed', request.ip) && !(token && deps.recognizes(token))) throw limit.refusal();
  const actor = token && (await deps.authenticate(token));
  if (!actor) {
    limit.add('failed', request.ip);
    throw unauthenticated(
      token === null
        ? 'send the header `Authorization: apikey <id>$<secret>`'
        : 'the token is unknown, expired or revoked',
    );
  }
  request.by = { actor, requestId: request.id, request: factsOf(request) };
  if (!atLeast(actor, rule.role)) {
    throw new ClientError('Forbidden', `this needs the role ${rule.role}; the token's role is ${actor.role}`);
  }
  if (rule.reach === 'operator' && !actor.operator) {
    throw new ClientError('Forbidden', 'this is for the operator of this Cloudyard');
  }
  if (actor.projectIds && concernsAllProjects(rule)) {
    throw new ClientError('Forbidden', 'this acts on all projects of the client; the token is limited to some of them');
  }
}

/** What every project of a client shares: its webhooks with their secrets, its addresses, its threshold. */
function concernsAllProjects({ reach, role }: Rule): boolean {
  return reach === 'operator' || (reach === 'client' && role !== 'reader');
}

/** To what the path names. @throws ClientError 403, 404 */
async function letTo(deps: AuthorizationDeps, request: FastifyRequest, rule: Rule): Promise<void> {
  const { actor } = request.by;
  const path = request.params as { project_id?: number; region_id?: number; client_id?: number };
  if (rule.reach === 'client') requireClient(actor, path.client_id!);
  request.scope = {
    clientId: path.client_id ?? actor.clientId,
    projectId: rule.reach === 'project' ? await requireProject(deps, actor, path.project_id!) : 0,
    regionId: path.region_id ?? 0,
    regionName: path.region_id === undefined ? '' : requireRegion(deps, path.region_id),
  };
  request.by.request!.scope = request.scope;
}

/** Here, before the body is read, as a path without a route needs none. */
function noRoute({ method, url }: FastifyRequest): ClientError {
  return new ClientError('NotFound', `there is no ${method} ${url.split('?')[0]}`);
}

/** Undefined for the pages of the reference. */
function ruleOf(request: FastifyRequest): Rule | undefined {
  const operation = request.routeOptions.schema?.operationId;
  return operation === undefined ? undefined : policy[operation as Operation];
}

const maxClaim = 200;

/** For the audit log. What clients say of themselves is cut. */
function factsOf(request: FastifyRequest): RequestFacts {
  const { headers } = request;
  const claim = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const userAgent = claim('user-agent')?.slice(0, maxClaim);
  // Each proxy appends: what our own says stands at the end, what a client made up at the beginning.
  const forwardedFor = claim('x-forwarded-for')?.slice(-maxClaim);
  return {
    operation: request.routeOptions.schema!.operationId!,
    origin: {
      address: request.ip,
      method: request.method,
      path: request.url.split('?', 1)[0]!,
      ...(forwardedFor && { forwarded_for: forwardedFor }),
      ...(userAgent && { user_agent: userAgent }),
    },
  };
}

/** The scheme is `apikey`, in any case: real clients send `APIKey`. */
function tokenOf(request: FastifyRequest): string | null {
  return /^apikey +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? null;
}

function unauthenticated(message: string): ClientError {
  return new ClientError('Unauthenticated', message, { headers: { 'www-authenticate': 'apikey' } });
}

function requireClient(actor: Actor, clientId: number): void {
  const seesAllClients = actor.operator && atLeast(actor, 'admin') && !actor.projectIds;
  if (clientId === actor.clientId || seesAllClients) return;
  throw notFound('client', clientId);
}

async function requireProject(deps: AuthorizationDeps, actor: Actor, projectId: number): Promise<number> {
  const clientId = await deps.clientOfProject(projectId);
  if (clientId !== actor.clientId) throw notFound('project', projectId);
  if (actor.projectIds && !actor.projectIds.includes(projectId)) {
    throw new ClientError('Forbidden', `the token is not for project ${projectId}`);
  }
  return projectId;
}

function requireRegion(deps: AuthorizationDeps, regionId: number): string {
  const name = deps.regionName(regionId);
  if (name === null) throw notFound('region', regionId);
  return name;
}
