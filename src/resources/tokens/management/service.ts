/**
 * Tokens as the API manages them.
 *
 * Invariant: no caller sees, creates or revokes a token with more rights than its own: of another client (the operator
 * excepted), for a project that it cannot use, or that is valid for longer.
 */
import type { Actor, RequestContext } from '../../../authz/actor.ts';
import { ClientError, type FieldError, invalidInput, notFound, requireNoErrors } from '../../../errors/catalogue.ts';
import type { ValidFields } from '../../../errors/valid-fields.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import { type Clock, withZone } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import type { Clients } from '../../clients/service.ts';
import type { Projects } from '../../projects/service.ts';
import { type Collection, readExpiry, requireFound, toCollection, withErrors } from '../../service-kit.ts';
import type { CreateToken, ListTokens, NewToken, Token } from '../schema.ts';
import type { Tokens } from '../service.ts';
import * as store from '../store.ts';
import type { TokenRow } from '../store.ts';

interface TokenManagementDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  tokens: Tokens;
  clients: Clients;
  projects: Projects;
}

export type TokenManagement = ReturnType<typeof createTokenManagement>;

export function createTokenManagement(deps: TokenManagementDeps) {
  const { db, clock, idempotency, tokens, clients, projects } = deps;

  /** The client that the caller names, or its own. @throws ClientError 404 */
  const clientOf = async ({ clientId, operator, projectIds }: Actor, named = clientId): Promise<number> => {
    if (named === clientId) return clientId;
    if (!operator || projectIds) throw notFound('client', named);
    await clients.require(named);
    return named;
  };

  /** @throws ClientError 404 for a token that does not exist or that the caller must not see */
  const find = async (actor: Actor, id: number): Promise<TokenRow> => {
    const row = requireFound(await store.find(db, id), 'token', id);
    const seesClient = row.clientId === actor.clientId || (actor.operator && !actor.projectIds);
    if (!seesClient || !isWithin(row.projectIds, actor.projectIds)) throw notFound('token', id);
    return row;
  };

  const toResponse = (row: TokenRow): Token => ({
    id: row.id,
    key_id: row.keyId,
    client_id: row.clientId,
    name: row.name,
    role: row.role,
    project_ids: row.projectIds,
    state: stateOf(row, clock.now()),
    created_at: withZone(row.createdAt),
    expires_at: withZone(row.expiresAt),
    revoked_at: withZone(row.revokedAt),
    last_used_at: withZone(row.lastUsedAt),
  });

  /** The client of a new token. @throws ClientError 400 if it, or one of the projects, does not exist or is of another client */
  const ownerOf = async (actor: Actor, named: number | undefined, projectIds: number[]): Promise<number> => {
    const clientId = await clientOf(actor, named).catch((error: unknown) => {
      if (!(error instanceof ClientError) || error.code !== 'NotFound') throw error;
      throw invalidInput([{ path: 'client_id', message: error.message }]);
    });
    const owners = await Promise.all(projectIds.map((id) => projects.clientOf(id)));
    const errors = projectIds.map((id, at) => ({
      path: `project_ids.${at}`,
      message: `project ${id} of the client not found`,
    }));
    requireNoErrors(errors.filter((_, at) => owners[at] !== clientId));
    return clientId;
  };

  /** The errors of an expiry that is in the past, or later than that of the caller's token. */
  const readExpiryFor = async (actor: Actor, text: CreateToken['expires_at']) => {
    const { date, errors } = readExpiry('expires_at', text, clock.now());
    const limit = (await store.find(db, actor.tokenId))?.expiresAt;
    const isLater = limit && (date === null || date > limit);
    const message = `must not be later than the expiry of your token (${withZone(limit ?? null)})`;
    return { date, errors: errors.length === 0 && isLater ? [{ path: 'expires_at', message }] : errors };
  };

  return {
    /** For an invalid body. */
    bodyErrors: ({ expires_at }: ValidFields<CreateToken>): FieldError[] =>
      readExpiry('expires_at', expires_at, clock.now()).errors,

    async create(context: RequestContext, body: CreateToken): Promise<NewToken> {
      const { actor } = context;
      const projectIds = body.project_ids ?? null;
      if (!isWithin(projectIds, actor.projectIds)) {
        throw new ClientError('Forbidden', `project_ids must be among those of your token (${actor.projectIds})`);
      }
      const expiry = await readExpiryFor(actor, body.expires_at);
      const clientId = await withErrors(expiry.errors, ownerOf(actor, body.client_id, projectIds ?? []));
      const { name, role } = body;
      return idempotency.sealedTransaction(db, context, async (tx, act) => {
        act.clientId = clientId;
        const { row, text } = await tokens.insert(tx, { clientId, name, role, projectIds, expiresAt: expiry.date });
        await store.limitValid(tx, clientId, clock.now());
        return { ...toResponse(row), token: text };
      });
    },

    async list({ actor }: RequestContext, query: ListTokens): Promise<Collection<Token>> {
      const clientId = await clientOf(actor, query.client_id);
      const within = { clientId, projectIds: actor.projectIds, state: query.state, now: clock.now() };
      return toCollection(await store.page(db, within, query), toResponse);
    },

    get: async ({ actor }: RequestContext, id: number): Promise<Token> => toResponse(await find(actor, id)),

    async revoke(context: RequestContext, id: number): Promise<void> {
      const { clientId } = await find(context.actor, id);
      await idempotency.auditedTransaction(db, context, async (tx, act) => {
        act.clientId = clientId;
        await tokens.revokeIn(tx, id);
      });
    },
  };
}

/** Whether a token limited to `projectIds` has no project that one limited to `limit` lacks; null: all projects. */
function isWithin(projectIds: number[] | null, limit: number[] | null): boolean {
  if (limit === null) return true;
  return projectIds !== null && projectIds.every((id) => limit.includes(id));
}

function stateOf({ revokedAt, expiresAt }: TokenRow, now: Date): Token['state'] {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt <= now ? 'expired' : 'active';
}
