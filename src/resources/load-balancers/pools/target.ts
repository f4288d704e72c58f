/** Where a new pool goes: to a listener as its default pool, or to a load balancer alone. */
import type { ListenerProtocol } from '../../../drivers/load-balancer.ts';
import { ClientError } from '../../../errors/catalogue.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import { idOf } from './settings.ts';
import type { CreatePool } from './schema.ts';
import * as store from './store.ts';
import type { ListenerOfPool, Where } from './store.ts';

export interface Target {
  /** Empty where there are faults. */
  loadBalancerId: string;
  listener: ListenerOfPool | null;
  /** Protocols of the listeners that the pool will serve. */
  protocols: ListenerProtocol[];
  faults: FieldError[];
}

type Named = Pick<CreatePool, 'listener_id' | 'load_balancer_id' | 'loadbalancer_id'>;

export async function targetOf(tx: Tx, where: Where, body: Named): Promise<Target> {
  const faults: FieldError[] = [];
  const given = await givenLoadBalancer(tx, where, body, faults);
  const listenerId = idOf(body.listener_id);
  const listener = listenerId === null ? null : await store.findListener(tx, where, listenerId);
  if (listenerId !== null && !listener) {
    faults.push({ path: 'listener_id', message: `listener ${listenerId} was not found in this project and region` });
  }
  if (listener && given !== null && listener.loadBalancerId !== given) {
    const message = `listener ${listener.id} is of load balancer ${listener.loadBalancerId}, not of ${given}`;
    faults.push({ path: 'listener_id', message });
  }
  if (listenerId === null && given === null) {
    faults.push({ path: 'load_balancer_id', message: 'is required, or listener_id instead of it' });
  }
  return {
    loadBalancerId: listener?.loadBalancerId ?? given ?? '',
    listener,
    protocols: listener ? [listener.protocol] : [],
    faults,
  };
}

/** The load balancer that a body names in either spelling; null when it names none. Notes what is wrong with it. */
export async function givenLoadBalancer(
  tx: Tx,
  where: Where,
  body: Pick<Named, 'load_balancer_id' | 'loadbalancer_id'>,
  faults: FieldError[],
): Promise<string | null> {
  const id = idOf(body.load_balancer_id);
  const respelled = idOf(body.loadbalancer_id);
  if (id !== null && respelled !== null && id !== respelled) {
    faults.push({
      path: 'loadbalancer_id',
      message: `is another one than load_balancer_id, ${id}; give one of the two`,
    });
  }
  const given = id ?? respelled;
  if (given !== null && !(await store.hasLoadBalancer(tx, where, given))) {
    const path = id === null ? 'loadbalancer_id' : 'load_balancer_id';
    faults.push({ path, message: `load balancer ${given} was not found in this project and region` });
  }
  return given;
}

/** Call under the load balancer's lock. @throws ClientError 409 when the listener has a default pool, or is going */
export async function requireFree(tx: Tx, where: Where, listenerId: string): Promise<void> {
  const listener = await store.findListener(tx, where, listenerId);
  if (!listener || listener.deletedAt) {
    throw new ClientError('Conflict', `listener ${listenerId} is being deleted`);
  }
  if (listener.defaultPoolId === null) return;
  throw new ClientError(
    'Conflict',
    `listener ${listenerId} has a default pool, ${listener.defaultPoolId}; change that one, or delete it first`,
  );
}
