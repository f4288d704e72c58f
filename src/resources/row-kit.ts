/** Resources that live in their rows alone: every change is done with its transaction, which records a finished task. */
import type { RequestContext, Scope } from '../authz/actor.ts';
import { inUse } from '../errors/catalogue.ts';
import { foreignKeyViolation, postgresCode } from '../platform/db-errors.ts';
import type { Tx } from '../platform/db.ts';
import { changesUnderLock, type FindUses, requireUnused, type ServiceDeps, type TaskIds } from './service-kit.ts';
import type { ProjectRegion } from './store-kit.ts';

interface ResourceRow extends ProjectRegion {
  id: string;
}

interface ResourceStore {
  lock(tx: Tx, scope: ProjectRegion, id: string): Promise<ResourceRow | null>;
  remove(tx: Tx, id: string): Promise<void>;
}

export function createRowResource(
  deps: ServiceDeps,
  resource: 'network' | 'secret' | 'subnet',
  store: ResourceStore,
  findUses: FindUses<string>[],
) {
  const { tasks, quota } = deps;
  const change = changesUnderLock(deps, resource, store.lock);
  const one = { [`${resource}_count`]: 1 };
  const taskOf = (action: 'create' | 'update' | 'delete', { id, regionId, projectId }: ResourceRow) => {
    return { type: `${action}_${resource}`, key: { resource, id, regionId }, projectId, generation: 1 };
  };

  return {
    /** Records the task with this id, and counts the new row. */
    async recordCreated(
      tx: Tx,
      context: RequestContext,
      scope: Scope,
      row: ResourceRow,
      taskId: string,
    ): Promise<TaskIds> {
      const createdResources = { [`${resource}s`]: [row.id] };
      await tasks.recordFinished(tx, context, { ...taskOf('create', row), id: taskId, createdResources });
      await quota.reserve(tx, scope, one);
      return { tasks: [taskId] };
    },

    async recordUpdated(tx: Tx, context: RequestContext, row: ResourceRow): Promise<TaskIds> {
      return { tasks: [await tasks.recordFinished(tx, context, taskOf('update', row))] };
    },

    /** @throws ClientError 404, 409 that names the users of the resource */
    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      change(context, scope, id, async (tx, row) => {
        await requireUnused(tx, resource, id, findUses);
        await store.remove(tx, id);
        await tx.sendPending().catch((error: unknown) => {
          // A use that `findUses` does not list.
          throw postgresCode(error) === foreignKeyViolation ? inUse(resource, id, []) : error;
        });
        const taskId = await tasks.recordFinished(tx, context, taskOf('delete', row));
        await quota.release(tx, scope, one);
        return { tasks: [taskId] };
      }),
  };
}
