/** The checks of a policy that need its listener and its pool. */
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import { requireNotDeleted } from '../locked-changes.ts';
import * as poolStore from '../pools/store.ts';
import { poolUseErrors } from '../pools/attachment.ts';
import type { ListenerRow } from '../table.ts';
import type { L7PolicySettings } from './normalize.ts';
import { l7PolicyErrors } from './validation.ts';

function unknownPool(poolId: string): FieldError {
  return { path: 'redirect_pool_id', message: `pool ${poolId} not found in this project and region` };
}

/** The error of a policy that names an unknown pool, for one that has other errors, too. */
export async function unknownPoolErrors(
  tx: Tx,
  scope: ProjectRegion,
  { redirectPoolId: poolId }: L7PolicySettings,
): Promise<FieldError[]> {
  return poolId === null || (await poolStore.find(tx, scope, poolId)) ? [] : [unknownPool(poolId)];
}

/** @throws ClientError 409 if a deletion of the pool failed */
export async function policyErrors(
  tx: Tx,
  scope: ProjectRegion,
  settings: L7PolicySettings,
  listener: Pick<ListenerRow, 'protocol' | 'loadBalancerId'>,
): Promise<FieldError[]> {
  const errors = l7PolicyErrors(settings, listener.protocol);
  const { redirectPoolId: poolId } = settings;
  if (errors.length > 0) return [...errors, ...(await unknownPoolErrors(tx, scope, settings))];
  if (poolId === null) return [];
  const path = 'redirect_pool_id';
  const pool = await poolStore.find(tx, scope, poolId);
  if (!pool) return [unknownPool(poolId)];
  if (pool.loadBalancerId !== listener.loadBalancerId) {
    const message = `belongs to load balancer ${pool.loadBalancerId}, but the listener to ${listener.loadBalancerId}`;
    return [{ path, message }];
  }
  requireNotDeleted(pool, 'pool');
  return poolUseErrors(tx, pool, listener.protocol, path);
}
