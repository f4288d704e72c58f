/**
 * The rules of listeners. A listener is a part of its load balancer: it changes under that one's lock and generation, and
 * a task of it locks the whole.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../../errors/catalogue.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import type { Clock } from '../../../platform/clock.ts';
import { violatedConstraint } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { MemberRules } from '../../../platform/member-networks.ts';
import { settingFaults as poolFaults } from '../pools/checks.ts';
import { referenceFaults } from '../pools/references.ts';
import type { SecretsForUse } from '../pools/references.ts';
import type { Stats } from '../pools/schema.ts';
import type { LbPools } from '../pools/service.ts';
import { idOf } from '../pools/settings.ts';
import { givenLoadBalancer } from '../pools/target.ts';
import type { LoadBalancerChanges } from '../service.ts';
import { samePort, secretsWanted, settingFaults } from './checks.ts';
import { checkNested, insertNested, newListener } from './nested.ts';
import type { Nested } from './nested.ts';
import type {
  CreateListener,
  Listener,
  ListenerCollection,
  ListListeners,
  NestedListener,
  UpdateListener,
} from './schema.ts';
import { changedSettings, newSettings, settingsAfter } from './settings.ts';
import type { ListenerSettings } from './settings.ts';
import * as store from './store.ts';
import type { ListenerRow, ListenerView } from './store.ts';

export interface ListenersDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  changes: LoadBalancerChanges;
  secrets: SecretsForUse;
  lbPools: Pick<LbPools, 'insert' | 'markDeleted'>;
  memberRules: MemberRules;
  /** Counters by listener, as far as they are known; null: none are. */
  stats(listenerIds: string[]): Promise<Map<string, Stats> | null>;
}

export type Listeners = ReturnType<typeof createListeners>;
type TaskIds = { tasks: string[] };

export function createListeners(deps: ListenersDeps) {
  const { db, clock, idempotency, changes, secrets, lbPools } = deps;

  /** The listener, under the lock of its load balancer. @throws ClientError 404, 409 */
  const lock = async (tx: Tx, scope: Scope, id: string) => {
    const found = await store.find(tx, scope, id);
    if (!found) throw notFound('listener', id);
    const loadBalancer = await changes.lock(tx, scope, found.loadBalancerId);
    // Read again: who had the lock may have changed or removed it.
    const listener = await store.find(tx, scope, id);
    if (!listener) throw notFound('listener', id);
    return { loadBalancer, listener };
  };

  const lockForChange = async (tx: Tx, scope: Scope, id: string) => {
    const locked = await lock(tx, scope, id);
    if (locked.listener.deletedAt) {
      throw new ClientError('Conflict', `listener ${locked.listener.id} could not be deleted; delete it again`);
    }
    return locked;
  };

  const create = (context: RequestContext, scope: Scope, body: CreateListener): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const settings = newSettings(body);
      const faults: FieldError[] = [];
      const given = await givenLoadBalancer(tx, scope, body, faults);
      if (given === null) faults.push({ path: 'load_balancer_id', message: 'is required' });
      const defaultPoolId = idOf(body.default_pool_id);
      faults.push(
        ...settingFaults(settings, ''),
        ...(defaultPoolId === null ? [] : await defaultPoolFaults(tx, scope, defaultPoolId, given, settings)),
        ...(await referenceFaults(tx, secrets, scope, { secrets: secretsWanted(settings, null, ''), subnets: [] })),
      );
      if (given === null || faults.length > 0) throw invalidInput(faults);
      const loadBalancer = await changes.lock(tx, scope, given);
      const others = await store.ofLoadBalancer(tx, loadBalancer.id);
      requireFreePort(settings, others);
      if (defaultPoolId !== null) await requireFreePool(tx, scope, defaultPoolId, others);
      const taskId = randomUUID();
      const { id: loadBalancerId, projectId, regionId } = loadBalancer;
      const placed = { projectId, regionId, loadBalancerId, creatorTaskId: taskId, createdAt: clock.now() };
      const listener = newListener({ ...placed, settings, defaultPoolId });
      await store.insert(tx, listener).catch((error: unknown) => {
        throw violatedConstraint(error) === 'lb_listeners_port' ? portTaken(settings, 'another listener') : error;
      });
      const createdResources = { listeners: [listener.id] };
      await changes.enqueue(tx, context, loadBalancer, { id: taskId, type: 'create_lblistener', createdResources });
      return { tasks: [taskId] };
    });

  const update = (context: RequestContext, scope: Scope, id: string, body: UpdateListener): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const { loadBalancer, listener } = await lockForChange(tx, scope, id);
      const settings = settingsAfter(listener, body);
      const wanted = { secrets: secretsWanted(settings, listener, ''), subnets: [] };
      const faults = [...settingFaults(settings, ''), ...(await referenceFaults(tx, secrets, scope, wanted))];
      if (faults.length > 0) throw invalidInput(faults);
      const changed = changedSettings(listener, settings);
      // What failed is wanted and not in place: asking for it again is another try.
      if (Object.keys(changed).length === 0 && listener.provisioningStatus !== 'ERROR') return { tasks: [] };
      await store.update(tx, listener.id, { ...changed, provisioningStatus: 'PENDING_UPDATE' });
      return { tasks: [await changes.enqueue(tx, context, loadBalancer, { type: 'update_lblistener' })] };
    });

  const deleteListener = (
    context: RequestContext,
    scope: Scope,
    id: string,
    options: { deleteDefaultPool: boolean },
  ): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const { loadBalancer, listener } = await lock(tx, scope, id);
      await store.update(tx, listener.id, { deletedAt: clock.now(), provisioningStatus: 'PENDING_DELETE' });
      if (options.deleteDefaultPool && listener.defaultPoolId) await lbPools.markDeleted(tx, listener.defaultPoolId);
      return { tasks: [await changes.enqueue(tx, context, loadBalancer, { type: 'delete_lblistener' })] };
    });

  const statsOf = async (ids: string[], wanted: boolean | undefined) =>
    wanted && ids.length > 0 ? await deps.stats(ids) : null;

  return {
    create,
    update,
    delete: deleteListener,

    /** The deprecated form only renames. A name is on no host, so it is done with the transaction, without a task. */
    async rename(context: RequestContext, scope: Scope, id: string, name: string): Promise<Listener> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { listener } = await lockForChange(tx, scope, id);
        if (name !== listener.name) await store.update(tx, listener.id, { name });
        return present({ ...listener, name, taskId: null }, null, { showPasswords: true });
      });
    },

    /** `showPasswords`: false for readers, who could try a hash at home. */
    async list(scope: Scope, filter: ListListeners, options: { showPasswords: boolean }): Promise<ListenerCollection> {
      const { count, rows } = await store.list(db, scope, filter);
      const ids = rows.map((row) => row.id);
      const stats = await statsOf(ids, filter.show_stats);
      return { count, results: rows.map((row) => present(row, stats, options)) };
    },

    async get(scope: Scope, id: string, options: { showStats?: boolean; showPasswords: boolean }): Promise<Listener> {
      const listener = await store.view(db, scope, id);
      if (!listener) throw notFound('listener', id);
      return present(listener, await statsOf([listener.id], options.showStats), options);
    },

    /** For the create of a load balancer: what is wrong with its listeners by themselves. */
    checkNested: (scope: Scope, listeners: NestedListener[]) =>
      checkNested(listeners, deps.memberRules(scope.regionId)),
    /** For the create of a load balancer, in its transaction. @throws ClientError 400 */
    insertNested: (tx: Tx, nested: Nested) => insertNested({ secrets, lbPools }, tx, nested),
  };
}

/** What is wrong with a pool that a new listener names as its default one. */
async function defaultPoolFaults(
  tx: Tx,
  scope: Scope,
  poolId: string,
  loadBalancerId: string | null,
  settings: ListenerSettings,
): Promise<FieldError[]> {
  const fault = (message: string) => [{ path: 'default_pool_id', message }];
  const pool = await store.findPool(tx, scope, poolId);
  if (!pool) return fault(`pool ${poolId} was not found in this project and region`);
  if (loadBalancerId !== null && pool.loadBalancerId !== loadBalancerId) {
    return fault(`pool ${poolId} is of load balancer ${pool.loadBalancerId}, not of ${loadBalancerId}`);
  }
  const unfit = poolFaults(pool, [settings.protocol], '').map(({ path, message }) => `${path} ${message}`);
  return unfit.length > 0 ? fault(`pool ${poolId} does not fit: ${unfit.join('; ')}`) : [];
}

/** Call under the load balancer's lock. @throws ClientError 409 naming the listener that has the port */
function requireFreePort(settings: ListenerSettings, others: ListenerRow[]): void {
  const holder = others.find((other) => samePort(other, settings));
  if (!holder) return;
  throw portTaken(settings, `listener ${holder.id}${holder.deletedAt ? ', which is being deleted' : ''}`);
}

function portTaken({ protocol, protocolPort }: ListenerSettings, holder: string): ClientError {
  const transport = protocol === 'UDP' ? 'UDP port' : 'port';
  return new ClientError('Conflict', `${transport} ${protocolPort} of the load balancer is taken by ${holder}`);
}

/** Call under the load balancer's lock. @throws ClientError 409 when the pool is going, or serves another listener */
async function requireFreePool(tx: Tx, scope: Scope, poolId: string, others: ListenerRow[]): Promise<void> {
  const pool = await store.findPool(tx, scope, poolId);
  if (!pool || pool.deletedAt) throw new ClientError('Conflict', `pool ${poolId} is being deleted`);
  const user = others.find((other) => other.defaultPoolId === poolId);
  if (user) throw new ClientError('Conflict', `pool ${poolId} is the default pool of listener ${user.id} already`);
}

const forwardedHeaders = { 'X-Forwarded-For': 'true', 'X-Forwarded-Port': 'true', 'X-Forwarded-Proto': 'true' };

/** Like the password field of /etc/shadow: no password has this hash. */
const hiddenPassword = '*';

function present(
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
    pool_count: listener.defaultPoolId === null ? 0 : 1,
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
