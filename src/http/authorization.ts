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
import type { App } from './app.ts';

export interface AuthorizationDeps {
  /** Who the token belongs to; null when it is unknown, expired or revoked. */
  authenticate(token: string): Promise<Actor | null>;
  /** The client of a live project; null when there is none. */
  clientOfProject(projectId: number): Promise<number | null>;
  regionName(regionId: number): string | null;
}

export function authorization(app: App, deps: AuthorizationDeps): void {
  // With callbacks, because what is public is asked most: see telemetry.ts.
  app.addHook('onRequest', (request, _reply, done) => {
    const rule = ruleOf(request);
    if (!rule || rule.reach === 'public') return done();
    letIn(deps, request, rule).then(() => done(), done);
  });

  app.addHook('preHandler', (request, _reply, done) => {
    const rule = ruleOf(request);
    if (!rule || rule.reach === 'public') return done();
    letTo(deps, request, rule).then(() => done(), done);
  });
}

/** @throws ClientError 401, 403 */
async function letIn(deps: AuthorizationDeps, request: FastifyRequest, rule: Rule): Promise<void> {
  const actor = await deps.authenticate(tokenOf(request));
  if (!actor) throw unauthenticated('the token is unknown, expired or revoked');
  request.by = { actor, requestId: request.id, request: factsOf(request) };
  if (!atLeast(actor, rule.role)) {
    throw new ClientError('Forbidden', `this needs the role ${rule.role}; the token's role is ${actor.role}`);
  }
  if (rule.reach === 'operator' && !actor.operator) {
    throw new ClientError('Forbidden', 'this is for the operator of this Cloudyard');
  }
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

/** Undefined where no route matched. */
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
function tokenOf(request: FastifyRequest): string {
  const match = /^apikey +(\S+)$/i.exec(request.headers.authorization ?? '');
  if (match) return match[1]!;
  throw unauthenticated('send the header `Authorization: apikey <id>$<secret>`');
}

function unauthenticated(message: string): ClientError {
  return new ClientError('Unauthenticated', message, { headers: { 'www-authenticate': 'apikey' } });
}

function requireClient(actor: Actor, clientId: number): void {
  if (clientId === actor.clientId || (actor.operator && atLeast(actor, 'admin'))) return;
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
