/** Where a new pool is attached: to a listener, as its default pool, or only to a load balancer. And whether a listener can use a pool. */
import type { ListenerProtocol } from '../../../drivers/load-balancer.ts';
import { ClientError, type FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import { requireFound } from '../../service-kit.ts';
import type { Locked, ProjectRegion } from '../../store-kit.ts';
import * as listeners from '../listeners/store.ts';
import { lockNamedLoadBalancer, requireNotDeleted } from '../locked-changes.ts';
import { normalizeId } from '../patch.ts';
import * as store from '../store.ts';
import type { ListenerRow, LoadBalancerRow, PoolRow } from '../table.ts';
import * as pools from './store.ts';
import { poolErrors } from './validation.ts';
import type { CreatePool } from './schema.ts';

interface Attachment {
  /** Locked. Null only if there are errors. */
  loadBalancer: Locked<LoadBalancerRow> | null;
  listener: ListenerRow | null;
  errors: FieldError[];
}

export async function lockAttachment(
  tx: Tx,
  scope: ProjectRegion,
  body: Pick<CreatePool, 'listener_id' | 'load_balancer_id' | 'loadbalancer_id'>,
): Promise<Attachment> {
  const errors: FieldError[] = [];
  const named = await lockNamedLoadBalancer(tx, scope, body, errors);
  const listenerId = normalizeId(body.listener_id);
  const listener = listenerId === null ? null : await listeners.find(tx, scope, listenerId);
  if (listenerId !== null && !listener) {
    errors.push({ path: 'listener_id', message: `listener ${listenerId} not found in this project and region` });
  }
  if (listener && named !== null && listener.loadBalancerId !== named.id) {
    const message = `belongs to load balancer ${listener.loadBalancerId}, but load_balancer_id is ${named.id}; send only one`;
    errors.push({ path: 'listener_id', message });
  }
  if (listenerId === null && named === null) {
    errors.push({ path: 'load_balancer_id', message: 'is required without listener_id' });
  }
  const loadBalancer = named ? named.loadBalancer : listener && (await store.lock(tx, scope, listener.loadBalancerId));
  return { loadBalancer, listener, errors };
}

/** Why a listener of this protocol cannot use the pool, which `path` names. */
export async function poolUseErrors(
  tx: Tx,
  pool: PoolRow,
  protocol: ListenerProtocol,
  path: string,
): Promise<FieldError[]> {
  const protocols = [...(await pools.listenerProtocols(tx, pool.id)), protocol];
  const address = await pools.addressFor(tx, pool.loadBalancerId, pool);
  const unfit = poolErrors(pool, protocols, address, '').map((error) => `${error.path} ${error.message}`);
  return unfit.length > 0 ? [{ path, message: `pool ${pool.id} cannot be used: ${unfit.join('; ')}` }] : [];
}

/** Call with the lock of the load balancer. @throws ClientError 409 if the listener has a default pool or is deleted */
export async function requireNoDefaultPool(tx: Tx, scope: ProjectRegion, listenerId: string): Promise<void> {
  const listener = requireFound(await listeners.find(tx, scope, listenerId), 'listener', listenerId);
  requireNotDeleted(listener, 'listener');
  if (listener.defaultPoolId === null) return;
  throw new ClientError(
    'Conflict',
    `listener ${listenerId} already has the default pool ${listener.defaultPoolId}; update it, or delete it first`,
  );
}
