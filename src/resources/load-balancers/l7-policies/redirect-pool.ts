/** The checks of a policy that need its listener and its pool. */
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import { requireNotDeleted } from '../locked-changes.ts';
import * as poolStore from '../pools/store.ts';
import { poolUseErrors } from '../pools/attachment.ts';
import type { ListenerRow, PoolRow } from '../table.ts';
import type { L7PolicySettings } from './normalize.ts';
import { l7PolicyErrors } from './validation.ts';

const path = 'redirect_pool_id';

/** The pool of a policy; the errors of its settings for a listener of this protocol, and of an unknown pool. */
export async function checkSettings(
  tx: Tx,
  scope: ProjectRegion,
  settings: L7PolicySettings,
  protocol: ListenerRow['protocol'],
): Promise<{ pool: PoolRow | null; errors: FieldError[] }> {
  const { redirectPoolId: poolId } = settings;
  const pool = poolId === null ? null : await poolStore.find(tx, scope, poolId);
  const isUnknown = poolId !== null && !pool;
  const unknown = isUnknown ? [{ path, message: `pool ${poolId} not found in this project and region` }] : [];
  return { pool, errors: [...l7PolicyErrors(settings, protocol), ...unknown] };
}

/** @throws ClientError 409 if a deletion of the pool failed */
export async function policyErrors(
  tx: Tx,
  scope: ProjectRegion,
  settings: L7PolicySettings,
  listener: Pick<ListenerRow, 'protocol' | 'loadBalancerId'>,
): Promise<FieldError[]> {
  const { pool, errors } = await checkSettings(tx, scope, settings, listener.protocol);
  if (!pool || errors.length > 0) return errors;
  if (pool.loadBalancerId !== listener.loadBalancerId) {
    const message = `belongs to load balancer ${pool.loadBalancerId}, but the listener to ${listener.loadBalancerId}`;
    return [{ path, message }];
  }
  requireNotDeleted(pool, 'pool');
  return poolUseErrors(tx, pool, listener.protocol, path);
}
