/** The health monitor of a pool as a resource of its own. */
import { isDeepStrictEqual } from 'node:util';
import { type RequestContext, type Scope, whileWaiting } from '../../../authz/actor.ts';
import { ClientError, requireNoErrors } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { TaskIds } from '../../service-kit.ts';
import type { ChangePool } from '../members/service.ts';
import type { PoolRow } from '../table.ts';
import { newHealthMonitor } from './normalize.ts';
import type { CreateHealthMonitor, HealthMonitor, LbPool, PatchHealthMonitor } from './schema.ts';
import * as store from './store.ts';
import { monitorErrors } from './validation.ts';

interface HealthMonitorsDeps {
  change: ChangePool;
  /** @throws ClientError 404 */
  view(scope: Scope, poolId: string): Promise<LbPool>;
  untilEnd(taskId: string, seconds: number): Promise<void>;
}

/** How long a response without a task waits for the host. */
const waitSeconds = 5;

export function createHealthMonitors({ change, view, untilEnd }: HealthMonitorsDeps) {
  return {
    async getHealthMonitor(scope: Scope, poolId: string): Promise<NonNullable<LbPool['healthmonitor']>> {
      const { healthmonitor } = await view(scope, poolId);
      if (!healthmonitor) throw noMonitor(poolId);
      return healthmonitor;
    },

    /** Creates or replaces the monitor; README.md explains why an existing one is not a conflict. */
    createHealthMonitor: (
      context: RequestContext,
      scope: Scope,
      poolId: string,
      body: CreateHealthMonitor,
    ): Promise<TaskIds> =>
      change(context, scope, poolId, async (tx, pool) =>
        write(tx, pool, newHealthMonitor(body, pool.healthMonitor), 'create_lbpool_health_monitor'),
      ),

    updateHealthMonitor: (
      context: RequestContext,
      scope: Scope,
      poolId: string,
      body: PatchHealthMonitor,
    ): Promise<TaskIds> =>
      change(context, scope, poolId, async (tx, pool) => {
        const current = pool.healthMonitor;
        if (!current) throw noMonitor(pool.id);
        const monitor = newHealthMonitor({ ...current, ...body, type: body.type ?? current.type }, current);
        if (isDeepStrictEqual(monitor, current) && pool.provisioningStatus !== 'ERROR') return null;
        return write(tx, pool, monitor, 'update_lbpool_health_monitor');
      }),

    /**
     * The response has no task that a client could wait for, so it waits for the host itself, at most `waitSeconds`:
     * otherwise the next request of the client would find the load balancer locked.
     */
    async deleteHealthMonitor(context: RequestContext, scope: Scope, poolId: string): Promise<void> {
      const { tasks } = await change(context, scope, poolId, async (tx, pool) => {
        if (!pool.healthMonitor) throw noMonitor(pool.id);
        await store.update(tx, pool.id, { healthMonitor: null, provisioningStatus: 'PENDING_UPDATE' });
        return { type: 'patch_lbpool' };
      });
      await whileWaiting(context, () => untilEnd(tasks[0]!, waitSeconds));
    },
  };
}

async function write(tx: Tx, pool: PoolRow, healthMonitor: HealthMonitor, type: string) {
  requireNoErrors(monitorErrors(healthMonitor, pool.protocol));
  await store.update(tx, pool.id, { healthMonitor, provisioningStatus: 'PENDING_UPDATE' });
  return { type, createdResources: { healthmonitors: [healthMonitor.id] } };
}

function noMonitor(poolId: string): ClientError {
  return new ClientError('NotFound', `pool ${poolId} has no health monitor`);
}
