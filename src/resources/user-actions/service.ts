/**
 * User actions: the audit log in the official shape, and the subscription of a client to it.
 *
 * An admin of the operator sees the actions of all clients, other callers those of their client, and tokens that are
 * limited to projects those in their projects. A subscription always has the actions of its own client.
 */
import { seesAllClients } from '../../authz/access.ts';
import type { Actor, RequestContext } from '../../authz/actor.ts';
import { ClientError, type FieldError, notFound, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import { type Keyring, reencryptAll } from '../../platform/encryption.ts';
import { pageInGroups, type PageInGroups } from '../../platform/large-rows.ts';
import {
  type Collection,
  readEnd,
  readInstant,
  requireAllProjects,
  requireFound,
  type ServiceDeps,
  toCollection,
} from '../service-kit.ts';
import type { PageQuery } from '../store-kit.ts';
import { officialOperations } from './actions.ts';
import { toUserAction } from './response.ts';
import type { ListUserActions, Subscribe, Subscription, UserAction, UserActionDelivery } from './schema.ts';
import * as store from './store.ts';

interface UserActionsDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  keyring: Keyring;
  /** Why a URL is invalid, or why calls may not go to its current address; null when they may. */
  refuseUrl(url: string): Promise<string | null>;
}

export type UserActions = ReturnType<typeof createUserActions>;

const scopeOfSubscriptions = 'a subscription covers all projects of the client';

const contextOf = (id: number | string) => `user_action_subscription:${id}`;

/** Headers that the call itself sets, or that change how the request is read. */
const reservedHeaders = new Set([
  ...['connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive'],
  ...['proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent'],
]);

export function createUserActions(deps: UserActionsDeps) {
  const { db, clock, keyring } = deps;

  const readActions = async (ids: number[]): Promise<(UserAction & { entryId: number })[]> => {
    const entries = await store.findEntries(db, ids);
    return entries.flatMap((entry) => {
      const action = toUserAction(entry);
      return action ? [{ ...action, entryId: entry.id }] : [];
    });
  };

  const valueOf = ({ id, authHeaderValue }: Pick<store.SubscriptionRow, 'id' | 'authHeaderValue'>): string =>
    keyring.decrypt(authHeaderValue, contextOf(id)).toString();

  /** What the schema cannot check. */
  const bodyErrors = async ({ url, auth_header_name: header = '' }: ValidFields<Subscribe>): Promise<FieldError[]> => {
    const refusal = url === undefined ? null : await deps.refuseUrl(url);
    return [...errorsOfHeader(header), ...(refusal === null ? [] : [{ path: 'url', message: refusal }])];
  };

  return {
    /** For an invalid body. */
    bodyErrors,

    /** A page, in groups, because some entries are large. */
    async list(actor: Actor, query: ListUserActions): Promise<PageInGroups<UserAction>> {
      const { action_type, api_group } = query;
      const found = await store.list(db, {
        ...query,
        // UUIDs of resources have lower case.
        resource_id: query.resource_id?.map((id) => id.toLowerCase()),
        visible: seesAllClients(actor) ? null : actor,
        operations: action_type || api_group ? officialOperations(action_type, api_group) : undefined,
        from: readInstant(query.from_timestamp),
        to: readEnd(query.to_timestamp),
        ascending: (query.order_by ?? query.sorting) === 'asc',
      });
      const read = async (ids: number[]) =>
        (await readActions(ids)).map(({ entryId, ...action }) => ({ id: entryId, action }));
      return pageInGroups(found, read, ({ action }) => action);
    },

    /** A client has at most one subscription, so `unsubscribe` does not name it. @throws ClientError 400, 409 */
    async subscribe(context: RequestContext, body: Subscribe): Promise<void> {
      requireAllProjects(context.actor, scopeOfSubscriptions);
      const { clientId } = context.actor;
      const { url, auth_header_name: authHeaderName } = body;
      // Name resolution needs the network, so it is done before the transaction.
      requireNoErrors(await bodyErrors(body));
      const id = await store.reserveId(db);
      const authHeaderValue = keyring.encrypt(Buffer.from(body.auth_header_value), contextOf(id));
      await deps.idempotency.auditedTransaction(db, context, async (tx) => {
        const row = { id, clientId, url, authHeaderName, authHeaderValue, createdAt: clock.now() };
        if (await store.insert(tx, row)) return;
        throw new ClientError('Conflict', 'the client has a subscription; unsubscribe first');
      });
    },

    /** Pending deliveries are dropped. @throws ClientError 404 */
    async unsubscribe(context: RequestContext): Promise<void> {
      requireAllProjects(context.actor, scopeOfSubscriptions);
      const { clientId } = context.actor;
      await deps.idempotency.auditedTransaction(db, context, async (tx) => {
        if (!(await store.remove(tx, clientId))) throw notFound('subscription of client', clientId);
      });
    },

    async listSubscriptions(actor: Actor, page: PageQuery): Promise<Collection<Subscription>> {
      requireAllProjects(actor, scopeOfSubscriptions);
      return toCollection(await store.listSubscriptions(db, actor.clientId, page), (row) => ({
        ...{ id: row.id, url: row.url, auth_header_name: row.authHeaderName },
        auth_header_value: valueOf(row),
      }));
    },

    /** @throws ClientError 404 */
    async getDelivery(actor: Actor, id: number): Promise<UserActionDelivery> {
      requireAllProjects(actor, scopeOfSubscriptions);
      return toDelivery(requireFound(await store.findDelivery(db, actor.clientId, id), 'delivery of user action', id));
    },

    /** Sends the action again, in any state of its delivery. @throws ClientError 404 */
    async replayDelivery(context: RequestContext, id: number): Promise<UserActionDelivery> {
      requireAllProjects(context.actor, scopeOfSubscriptions);
      const { clientId } = context.actor;
      return deps.idempotency.auditedTransaction(db, context, async (tx) =>
        toDelivery(requireFound(await store.requestDelivery(tx, clientId, id), 'delivery of user action', id)),
      );
    },

    /** The value of the header, which signs the calls. @throws EncryptionError */
    valueOf,

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> => reencryptAll(keyring, contextOf, store.ciphertexts(db)),
  };
}

function toDelivery({ entryId, state, failures, nextAttemptAt, attempts }: store.DeliveryRow): UserActionDelivery {
  return {
    user_action_id: String(entryId),
    state: state as UserActionDelivery['state'],
    failures,
    next_attempt_at: state === 'pending' ? withZone(nextAttemptAt) : null,
    attempts,
  };
}

function errorsOfHeader(header: string): FieldError[] {
  const name = header.toLowerCase();
  if (!reservedHeaders.has(name) && !name.startsWith('cloudyard-')) return [];
  return [{ path: 'auth_header_name', message: `${header} is set by Cloudyard; use another header` }];
}
