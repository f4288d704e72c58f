/** The tags of a load balancer as resources of their own. Hosts do not use tags, so a task is finished with its change. */
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { TagChange, Tags } from '../../../tags/tags.ts';
import { changedColumns } from '../../service-kit.ts';
import type { TaskIds } from '../../service-kit.ts';
import type { LoadBalancerRow } from '../table.ts';

interface LoadBalancerMetadataDeps {
  db: Db;
  idempotency: Idempotency;
  /** @throws ClientError 404, 409 */
  lock(tx: Tx, scope: Scope, id: string): Promise<LoadBalancerRow>;
  /** Writes a change that the host need not follow, with its finished task. An empty change has no task. */
  record(
    tx: Tx,
    context: RequestContext,
    loadBalancer: LoadBalancerRow,
    type: string,
    written: Partial<LoadBalancerRow>,
  ): Promise<TaskIds>;
  /** @throws ClientError 404 */
  loadBalancer(scope: Scope, id: string): Promise<LoadBalancerRow>;
}

export type LoadBalancerMetadata = ReturnType<typeof createLoadBalancerMetadata>;

export function createLoadBalancerMetadata({ db, idempotency, lock, record, loadBalancer }: LoadBalancerMetadataDeps) {
  const write = async (tx: Tx, context: RequestContext, scope: Scope, id: string, change: TagChange) => {
    const row = await lock(tx, scope, id);
    return record(tx, context, row, 'update_loadbalancer', changedColumns(row, { tags: change(row.tags) }));
  };

  return {
    async tagsOf(scope: Scope, id: string): Promise<Tags> {
      return (await loadBalancer(scope, id)).tags;
    },

    async change(context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, (tx) => write(tx, context, scope, id, change));
    },

    /** As `change`, for the v1 operations, which return nothing. */
    async changeTags(context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        await write(tx, context, scope, id, change);
      });
    },
  };
}
