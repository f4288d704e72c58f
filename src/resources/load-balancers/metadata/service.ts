/**
 * The tags of a load balancer by their own operations. No host has to follow, so the task is done with the change; v2
 * answers it, v1 does not. A load balancer that a task works on is locked for these, too.
 */
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { notFound } from '../../../errors/catalogue.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import { presentTags, sameTags } from '../../../tags/tags.ts';
import type { Tag, TagChange } from '../../../tags/tags.ts';
import type { LoadBalancerRow } from '../store.ts';

type TaskIds = { tasks: string[] };

export interface LoadBalancerMetadataDeps {
  db: Db;
  idempotency: Idempotency;
  /** @throws ClientError 404, 409 */
  lock(tx: Tx, scope: Scope, id: string): Promise<LoadBalancerRow>;
  /** Writes what lives in the row alone, with a task that is done; neither when nothing changes. */
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

export function createLoadBalancerMetadata(deps: LoadBalancerMetadataDeps) {
  const write = async (
    tx: Tx,
    context: RequestContext,
    scope: Scope,
    id: string,
    change: TagChange,
  ): Promise<TaskIds> => {
    const loadBalancer = await deps.lock(tx, scope, id);
    const tags = change(loadBalancer.tags);
    const written = sameTags(tags, loadBalancer.tags) ? {} : { tags };
    return deps.record(tx, context, loadBalancer, 'update_loadbalancer', written);
  };

  return {
    async list(scope: Scope, id: string): Promise<{ count: number; results: Tag[] }> {
      const results = presentTags((await deps.loadBalancer(scope, id)).tags);
      return { count: results.length, results };
    },

    async get(scope: Scope, id: string, key: string): Promise<Tag> {
      const tag = presentTags((await deps.loadBalancer(scope, id)).tags).find((candidate) => candidate.key === key);
      if (!tag) throw notFound('tag', key);
      return tag;
    },

    async change(context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<TaskIds> {
      return deps.idempotency.auditedTransaction(deps.db, context, (tx) => write(tx, context, scope, id, change));
    },

    async changeV1(context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<void> {
      await deps.idempotency.auditedTransaction(
        deps.db,
        context,
        async (tx) => void (await write(tx, context, scope, id, change)),
      );
    },
  };
}
