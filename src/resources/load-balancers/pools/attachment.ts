/** Where a new pool is attached: to a listener, as its default pool, or only to a load balancer. */
import { ClientError } from '../../../errors/catalogue.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import * as listeners from '../listeners/store.ts';
import { findNamedLoadBalancer } from '../locked-changes.ts';
import { normalizeId } from '../patch.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import type { ListenerRow } from '../table.ts';
import type { CreatePool } from './schema.ts';

interface Attachment {
  /** Empty if there are errors. */
  loadBalancerId: string;
  listener: ListenerRow | null;
  errors: FieldError[];
}

export async function findAttachment(
  tx: Tx,
  scope: ProjectRegion,
  body: Pick<CreatePool, 'listener_id' | 'load_balancer_id' | 'loadbalancer_id'>,
): Promise<Attachment> {
  const errors: FieldError[] = [];
  const named = await findNamedLoadBalancer(tx, scope, body, errors);
  const listenerId = normalizeId(body.listener_id);
  const listener = listenerId === null ? null : await listeners.find(tx, scope, listenerId);
  if (listenerId !== null && !listener) {
    errors.push({ path: 'listener_id', message: `listener ${listenerId} was not found in this project and region` });
  }
  if (listener && named !== null && listener.loadBalancerId !== named) {
    const message = `belongs to load balancer ${listener.loadBalancerId}, but load_balancer_id is ${named}; send only one`;
    errors.push({ path: 'listener_id', message });
  }
  if (listenerId === null && named === null) {
    errors.push({ path: 'load_balancer_id', message: 'is required without listener_id' });
  }
  return { loadBalancerId: listener?.loadBalancerId ?? named ?? '', listener, errors };
}

/** Call with the lock of the load balancer. @throws ClientError 409 if the listener has a default pool or is deleted */
export async function requireNoDefaultPool(tx: Tx, scope: ProjectRegion, listenerId: string): Promise<void> {
  const listener = await listeners.find(tx, scope, listenerId);
  if (!listener || listener.deletedAt) {
    throw new ClientError('Conflict', `listener ${listenerId} is being deleted`);
  }
  if (listener.defaultPoolId === null) return;
  throw new ClientError(
    'Conflict',
    `listener ${listenerId} already has the default pool ${listener.defaultPoolId}; update it, or delete it first`,
  );
}
