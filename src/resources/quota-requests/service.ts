/**
 * The rules of quota requests. A client asks for limits; the operator approves or declines.
 *
 * Invariant: a request is decided once. The decision, the new limits, the audit entry and the notification of the client
 * are one transaction, which holds the row of the request.
 */
import { type Audit, type AuditedAction, commandAction } from '../../audit/audit.ts';
import { seesAllClients } from '../../authz/access.ts';
import type { Actor, RequestContext } from '../../authz/actor.ts';
import { ClientError, type FieldError, invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Kind } from '../../quota/kinds.ts';
import type { Notifications } from '../notifications/service.ts';
import type { Regions } from '../regions/service.ts';
import {
  type Collection,
  readEnd,
  readInstant,
  requireAllProjects,
  requireFound,
  requireOwnClient,
  type ServiceDeps,
  toCollection,
} from '../service-kit.ts';
import { decisionMessage, limitsOf, type RequestedLimit } from './desired.ts';
import type { CreateQuotaRequest, ListQuotaRequests, QuotaRequest, RequestedLimits } from './schema.ts';
import * as store from './store.ts';
import type { QuotaRequestRow } from './store.ts';

interface QuotaRequestsDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'quota' | 'idempotency'> {
  audit: Audit;
  regions: Regions;
  notifications: Notifications;
}

export type QuotaRequests = ReturnType<typeof createQuotaRequests>;

export interface Decision {
  approve: boolean;
  reason: string | null;
}

const what = 'quota request';
const scopeOfLimits = 'limits apply to all projects of the client';

export function createQuotaRequests(deps: QuotaRequestsDeps) {
  const { db, clock, quota, regions } = deps;

  /** In the transaction of the decision. @throws ClientError 404, 409 */
  const decide = async (tx: Tx, act: AuditedAction, id: number, decision: Decision): Promise<QuotaRequest> => {
    const row = requireFound(await store.lock(tx, id, null), what, id);
    requireOpen(row);
    act.clientId = row.clientId;
    if (decision.approve) await setLimits(tx, row);
    const changes = {
      status: decision.approve ? ('done' as const) : ('rejected' as const),
      reason: decision.reason,
      updatedAt: clock.now(),
    };
    await store.update(tx, id, changes);
    const decided = { ...row, ...changes };
    await deps.notifications.issue(tx, decisionMessage(decided, regions.nameOf));
    return toResponse(decided);
  };

  const setLimits = async (tx: Tx, { id, clientId, requestedLimits }: QuotaRequestRow): Promise<void> => {
    const limits = limitsOf(requestedLimits);
    const exceeded = await belowUsage(tx, clientId, limits);
    if (exceeded.length > 0) {
      throw new ClientError('Conflict', `quota request ${id} requests less than the current usage; decline it`, {
        errors: exceeded,
      });
    }
    for (const [regionId, ofRegion] of Map.groupBy(limits, (one) => one.regionId)) {
      const byKind = Object.fromEntries(ofRegion.map(({ kind, limit }) => [kind, limit]));
      await quota.setLimits(tx, { clientId, regionId }, byKind);
    }
  };

  /** The limits that are below the current usage. */
  const belowUsage = async (on: Db | Tx, clientId: number, limits: RequestedLimit[]): Promise<FieldError[]> => {
    const errors: FieldError[] = [];
    for (const [regionId, ofRegion] of Map.groupBy(limits, (one) => one.regionId)) {
      const kinds: Kind[] = ofRegion.map(({ kind }) => kind);
      const figures = await quota.figures(on, { clientId, regionId }, kinds);
      for (const [i, { usage }] of figures.entries()) {
        const { path, limit } = ofRegion[i]!;
        if (limit < usage) errors.push({ path, message: `must be at least the current usage (${usage})` });
      }
    }
    return errors;
  };

  return {
    /** For an invalid body. */
    bodyErrors: ({ requested_limits: limits }: ValidFields<CreateQuotaRequest>): FieldError[] =>
      limits ? errorsOf(limits, regions) : [],

    async create(context: RequestContext, body: CreateQuotaRequest): Promise<void> {
      const { clientId } = context.actor;
      requireAllProjects(context.actor, scopeOfLimits);
      const { description, requested_limits: requestedLimits } = body;
      requireOwnClient(context.actor, body.client_id);
      requireNoErrors(errorsOf(requestedLimits, regions));
      await deps.idempotency.auditedTransaction(db, context, async (tx) => {
        const exceeded = await belowUsage(tx, clientId, limitsOf(requestedLimits));
        if (exceeded.length > 0) throw invalidInput(exceeded);
        await store.insert(tx, {
          ...{ clientId, description, requestedLimits, status: 'in progress', reason: null },
          ...{ createdAt: clock.now(), updatedAt: null },
        });
        await store.limitOpen(tx, clientId);
      });
    },

    /** Newest first. */
    async list(actor: Actor, query: ListQuotaRequests): Promise<Collection<QuotaRequest>> {
      const filter = {
        ...query,
        clientId: visibleTo(actor),
        from: readInstant(query.created_from),
        to: readEnd(query.created_to),
      };
      return toCollection(await store.list(db, filter), toResponse);
    },

    async get(actor: Actor, id: number): Promise<QuotaRequest> {
      return toResponse(requireFound(await store.find(db, id, visibleTo(actor)), what, id));
    },

    /** Decided requests are kept: they explain the current limits. */
    async delete(context: RequestContext, id: number): Promise<void> {
      requireAllProjects(context.actor, scopeOfLimits);
      await deps.idempotency.auditedTransaction(db, context, async (tx, act) => {
        const row = requireFound(await store.lock(tx, id, visibleTo(context.actor)), what, id);
        requireOpen(row);
        act.clientId = row.clientId;
        await store.remove(tx, id);
      });
    },

    decide: (context: RequestContext, id: number, decision: Decision): Promise<QuotaRequest> =>
      deps.idempotency.auditedTransaction(db, context, (tx, act) => decide(tx, act, id, decision)),

    /** The same for a command on the host. */
    decideByCommand: (id: number, decision: Decision): Promise<QuotaRequest> =>
      deps.audit.transaction(
        db,
        commandAction(decision.approve ? 'approveQuotaRequest' : 'declineQuotaRequest'),
        (tx, act) => decide(tx, act, id, decision),
      ),

    /** The requests of all clients, newest first. */
    async listAll(statuses: ListQuotaRequests['status'] | undefined): Promise<QuotaRequest[]> {
      const filter = { clientId: null, from: undefined, to: undefined, ...(statuses && { status: statuses }) };
      return (await store.list(db, filter)).rows.map(toResponse);
    },
  };
}

/** An admin of the operator sees the requests of all clients (null), other callers those of their client. */
function visibleTo(actor: Actor): number | null {
  return seesAllClients(actor) ? null : actor.clientId;
}

/** @throws ClientError 409 */
function requireOpen({ id, status }: QuotaRequestRow): void {
  if (status === 'in progress') return;
  throw new ClientError('Conflict', `quota request ${id} was already ${status === 'done' ? 'approved' : 'declined'}`);
}

/** What a schema cannot express. */
function errorsOf(
  { global_limits, regional_limits = [] }: ValidFields<RequestedLimits>,
  regions: Regions,
): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, { region_id: regionId, ...limits }] of regional_limits.entries()) {
    const path = `requested_limits.regional_limits.${i}`;
    const first = regional_limits.findIndex((other) => other.region_id === regionId);
    if (regionId === undefined) errors.push({ path: `${path}.region_id`, message: 'is required' });
    else if (!regions.get(regionId)) {
      errors.push({ path: `${path}.region_id`, message: `region ${regionId} not found` });
    } else if (first < i) {
      errors.push({ path: `${path}.region_id`, message: `conflicts with regional_limits.${first}: the same region` });
    }
    if (limitsOf({ global_limits: limits as Record<string, number> }).length === 0) {
      errors.push({ path, message: 'must request at least one limit' });
    }
  }
  if (regional_limits.length === 0 && Object.keys(global_limits ?? {}).length === 0) {
    errors.push({ path: 'requested_limits', message: 'must request at least one limit' });
  }
  return errors;
}

function toResponse(row: QuotaRequestRow): QuotaRequest {
  return {
    id: row.id,
    client_id: row.clientId,
    description: row.description,
    requested_limits: row.requestedLimits,
    status: row.status,
    reason: row.reason,
    created_at: withZone(row.createdAt),
    updated_at: withZone(row.updatedAt),
  };
}
