/**
 * Rules of listeners. A listener is part of its load balancer: it shares its lock, generation and tasks
 * (locked-changes.ts).
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, type FieldError, invalidInput, requireNoErrors } from '../../../errors/catalogue.ts';
import { violatedConstraint } from '../../../platform/db-errors.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { MemberRules } from '../../../platform/member-networks.ts';
import {
  changedColumns,
  type Collection,
  isEmpty,
  requireFound,
  requireUnused,
  type ServiceDeps,
  type TaskIds,
  toCollection,
} from '../../service-kit.ts';
import * as l7PolicyStore from '../l7-policies/store.ts';
import {
  createPartChanges,
  type LoadBalancerChanges,
  lockNamedLoadBalancer,
  requireChangeable,
  requireNotDeleted,
} from '../locked-changes.ts';
import { normalizeId } from '../patch.ts';
import type { Pools } from '../pools/service.ts';
import * as poolStore from '../pools/store.ts';
import { poolUseErrors } from '../pools/attachment.ts';
import { referenceErrors, type SecretsForUse } from '../references.ts';
import type { Stats } from '../shapes.ts';
import type { VipFamily } from '../schema.ts';
import * as loadBalancerStore from '../store.ts';
import { statsOfListeners } from '../traffic/store.ts';
import {
  insertNested,
  nestedErrors,
  type NestedListeners,
  nestedReferenceErrors,
  newListener,
} from './nested-listeners.ts';
import { type ListenerSettings, newListenerSettings, patchedListenerSettings } from './normalize.ts';
import type { CreateListener, Listener, ListListeners, NestedListener, UpdateListener } from './schema.ts';
import * as store from './store.ts';
import type { ListenerView } from './store.ts';
import { havePortInCommon, listenerErrors, listenerSecrets } from './validation.ts';

interface ListenersDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  changes: LoadBalancerChanges;
  secrets: SecretsForUse;
  pools: Pick<Pools, 'insert' | 'markDeleted'>;
  memberRules: MemberRules;
}

export type Listeners = ReturnType<typeof createListeners>;

export function createListeners(deps: ListenersDeps) {
  const { db, clock, idempotency, changes, secrets, pools } = deps;
  const parts = createPartChanges(deps, 'listener', store.lockListener);

  const create = (context: RequestContext, scope: Scope, body: CreateListener): Promise<TaskIds> =>
    idempotency
      .auditedTransaction(db, context, async (tx) => {
        const settings = newListenerSettings(body);
        const errors: FieldError[] = [];
        const named = await lockNamedLoadBalancer(tx, scope, body, errors);
        if (!named) errors.push({ path: 'load_balancer_id', message: 'is required' });
        const defaultPoolId = normalizeId(body.default_pool_id);
        errors.push(
          ...listenerErrors(settings, ''),
          ...(defaultPoolId === null
            ? []
            : await defaultPoolErrors(tx, scope, defaultPoolId, named?.id ?? null, settings)),
          ...(await referenceErrors(tx, secrets, scope, { secrets: listenerSecrets(settings, null, '') })),
        );
        if (!named?.loadBalancer || errors.length > 0) throw invalidInput(errors);
        const { loadBalancer } = named;
        requireChangeable(loadBalancer);
        if (defaultPoolId !== null) await requireFreePool(tx, scope, defaultPoolId);
        const creatorTaskId = randomUUID();
        const { projectId, regionId, id: loadBalancerId } = loadBalancer;
        const place = { projectId, regionId, loadBalancerId, creatorTaskId, createdAt: clock.now() };
        const listener = newListener({ ...place, settings, defaultPoolId });
        await store.insert(tx, listener);
        await loadBalancerStore.limitListeners(tx, loadBalancerId);
        return changes.enqueue(tx, context, loadBalancer, {
          id: creatorTaskId,
          type: 'create_lblistener',
          createdResources: { listeners: [listener.id] },
          data: { listener_id: listener.id },
        });
      })
      .catch(async (error: unknown) => {
        // Found by the index when the writes are sent: a read before each create would only serve the message.
        throw violatedConstraint(error) === 'lb_listeners_port' ? await portInUse(db, body) : error;
      });

  const update = (context: RequestContext, scope: Scope, id: string, body: UpdateListener): Promise<TaskIds> =>
    parts.change(context, scope, id, async (tx, listener) => {
      const settings = patchedListenerSettings(listener, body);
      requireNoErrors([
        ...listenerErrors(settings, ''),
        ...(await referenceErrors(tx, secrets, scope, { secrets: listenerSecrets(settings, listener, '') })),
      ]);
      const changed = changedColumns<ListenerSettings, ListenerSettings>(listener, settings);
      const type = 'patch_lblistener';
      // After a failure the same update is a retry. The Terraform provider sends an empty body, and crashes without a task.
      if (isEmpty(changed) && listener.provisioningStatus !== 'ERROR') {
        return isEmpty(body) ? { type, isDone: true } : null;
      }
      await store.update(tx, listener.id, { ...changed, provisioningStatus: 'PENDING_UPDATE' });
      return { type };
    });

  const statsOf = async (ids: string[], show: boolean | undefined) =>
    show && ids.length > 0 ? await statsOfListeners(db, ids) : null;

  /** `showPasswords` is false for readers, who could attack the hashes offline. */
  const get = async (scope: Scope, id: string, options: { showStats?: boolean; showPasswords: boolean }) => {
    const listener = requireFound(await store.view(db, scope, id), 'listener', id);
    return toResponse(listener, await statsOf([listener.id], options.showStats), options);
  };

  return {
    create,
    update,
    get,

    delete: (
      context: RequestContext,
      scope: Scope,
      id: string,
      options: { deleteDefaultPool: boolean },
    ): Promise<TaskIds> =>
      parts.remove(context, scope, id, async (tx, { id, defaultPoolId }) => {
        await store.update(tx, id, { deletedAt: clock.now(), provisioningStatus: 'PENDING_DELETE' });
        await l7PolicyStore.markDeletedOfListener(tx, id, clock.now());
        if (options.deleteDefaultPool && defaultPoolId) {
          await requireUnused(tx, 'pool', defaultPoolId, [l7PolicyStore.usesOfPool]);
          await pools.markDeleted(tx, defaultPoolId);
        }
        return { type: 'delete_lblistener' };
      }),

    /** The deprecated update. Hosts do not use names, so it needs no task. */
    async rename(context: RequestContext, scope: Scope, id: string, name: string): Promise<Listener> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, part: listener } = await parts.lock(tx, scope, id);
        if (name === listener.name) return;
        await store.update(tx, listener.id, { name });
        await loadBalancerStore.update(tx, loadBalancer.id, { updatedAt: clock.now() });
      });
      return get(scope, id, { showPasswords: true });
    },

    async list(
      scope: Scope,
      filter: ListListeners,
      options: { showPasswords: boolean },
    ): Promise<Collection<Listener>> {
      const found = await store.list(db, scope, filter);
      const ids = found.rows.map((row) => row.id);
      const stats = await statsOf(ids, filter.show_stats);
      return toCollection(found, toResponse, stats, options);
    },

    /** For the create of a load balancer; see nested-listeners.ts. */
    nestedErrors: async (tx: Tx, scope: Scope, listeners: NestedListener[], family: VipFamily) => [
      ...nestedErrors(listeners, family, deps.memberRules(scope.regionId)),
      ...(await nestedReferenceErrors(secrets, tx, scope, listeners)),
    ],
    insertNested: (tx: Tx, nested: NestedListeners) => insertNested(pools, tx, nested),
  };
}

async function defaultPoolErrors(
  tx: Tx,
  scope: Scope,
  poolId: string,
  loadBalancerId: string | null,
  settings: ListenerSettings,
): Promise<FieldError[]> {
  const error = (message: string) => [{ path: 'default_pool_id', message }];
  const pool = await poolStore.find(tx, scope, poolId);
  if (!pool) return error(`pool ${poolId} not found in this project and region`);
  if (loadBalancerId !== null && pool.loadBalancerId !== loadBalancerId) {
    return error(`belongs to load balancer ${pool.loadBalancerId}, but load_balancer_id is ${loadBalancerId}`);
  }
  return poolUseErrors(tx, pool, settings.protocol, 'default_pool_id');
}

/** The 409 of a new listener on a port that another one has; names the other one. */
async function portInUse(db: Db, body: CreateListener): Promise<ClientError> {
  const settings = newListenerSettings(body);
  const others = await store.findByLoadBalancer(db, normalizeId(body.load_balancer_id ?? body.loadbalancer_id)!);
  const holder = others.find((other) => havePortInCommon(other, settings));
  const name = holder
    ? `listener ${holder.id}${holder.deletedAt ? ', whose deletion failed; delete it again' : ''}`
    : 'another listener';
  const transport = settings.protocol === 'UDP' ? 'UDP port' : 'port';
  return new ClientError('Conflict', `${transport} ${settings.protocolPort} of the load balancer is used by ${name}`);
}

/** Call with the lock of the load balancer. @throws ClientError 409 if the pool is deleted or used by a listener */
async function requireFreePool(tx: Tx, scope: Scope, poolId: string): Promise<void> {
  const pool = requireFound(await poolStore.find(tx, scope, poolId), 'pool', poolId);
  requireNotDeleted(pool, 'pool');
  const listeners = await store.findByLoadBalancer(tx, pool.loadBalancerId);
  const user = listeners.find((listener) => listener.defaultPoolId === poolId);
  if (user) throw new ClientError('Conflict', `pool ${poolId} is already the default pool of listener ${user.id}`);
}

const forwardedHeaders = { 'X-Forwarded-For': 'true', 'X-Forwarded-Port': 'true', 'X-Forwarded-Proto': 'true' };

/** As in /etc/shadow: no password has this hash. */
const hiddenPassword = '*';

function toResponse(
  listener: ListenerView,
  stats: Map<string, Stats> | null,
  { showPasswords }: { showPasswords: boolean },
): Listener {
  return {
    id: listener.id,
    name: listener.name,
    admin_state_up: listener.adminStateUp,
    allowed_cidrs: listener.allowedCidrs,
    connection_limit: listener.connectionLimit,
    creator_task_id: listener.creatorTaskId,
    insert_headers: listener.insertXForwarded ? forwardedHeaders : {},
    load_balancer_id: listener.loadBalancerId,
    operating_status: listener.operatingStatus,
    pool_count: listener.poolCount,
    protocol: listener.protocol,
    protocol_port: listener.protocolPort,
    provisioning_status: listener.provisioningStatus,
    secret_id: listener.secretId,
    sni_secret_id: listener.sniSecretIds,
    stats: stats?.get(listener.id) ?? null,
    task_id: listener.taskId,
    timeout_client_data: listener.timeoutClientData,
    timeout_member_connect: listener.timeoutMemberConnect,
    timeout_member_data: listener.timeoutMemberData,
    user_list: showPasswords
      ? listener.userList
      : listener.userList.map((user) => ({ ...user, encrypted_password: hiddenPassword })),
  };
}
