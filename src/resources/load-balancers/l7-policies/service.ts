/**
 * Rules of L7 policies. A policy is part of its load balancer: it shares its lock, generation and tasks
 * (locked-changes.ts). Its tasks queue behind each other and behind those of pools.
 *
 * Invariant: the policies of a listener that are not being deleted have the positions 1 to n. The lock of the load balancer
 * orders concurrent changes.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, type FieldError, invalidInput, requireNoErrors } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import { pageInGroups, type PageInGroups } from '../../../platform/large-rows.ts';
import { changedColumns, isEmpty, requireFound, type TaskIds } from '../../service-kit.ts';
import type { PageQuery } from '../../store-kit.ts';
import * as listenerStore from '../listeners/store.ts';
import { createPartChanges, queuedTasks, requireNotDeleted } from '../locked-changes.ts';
import { normalizeId } from '../patch.ts';
import type { L7PolicyRow } from '../table.ts';
import { l7PolicySettings, type L7PolicySettings } from './normalize.ts';
import { policyToResponse } from './response.ts';
import { createL7Rules, type L7RulesDeps } from './rules/service.ts';
import { type CreateL7Policy, type L7Policy, nameRule, type UpdateL7Policy } from './schema.ts';
import * as store from './store.ts';
import { policyLimit } from './validation.ts';
import { checkSettings, policyErrors } from './redirect-pool.ts';

type Placed = L7PolicySettings & { position: number };

export type L7Policies = ReturnType<typeof createL7Policies>;

export function createL7Policies(deps: L7RulesDeps) {
  const { db, clock, idempotency, changes } = deps;
  const parts = createPartChanges(deps, 'L7 policy', store.lockL7Policy);

  const create = (context: RequestContext, scope: Scope, body: CreateL7Policy): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const listenerId = normalizeId(body.listener_id)!;
      const settings = l7PolicySettings(body, null);
      const listener = await listenerStore.find(tx, scope, listenerId);
      if (!listener) {
        const message = `listener ${listenerId} not found in this project and region`;
        const { errors } = await checkSettings(tx, scope, settings, 'HTTP');
        throw invalidInput([{ path: 'listener_id', message }, ...errors]);
      }
      const loadBalancer = await changes.lock(tx, scope, listener.loadBalancerId, queuedTasks);
      requireNoErrors(await policyErrors(tx, scope, settings, listener));
      await requireListener(tx, scope, listenerId);
      const existing = await store.count(tx, listenerId);
      const exceeded = policyLimit(existing);
      if (exceeded) throw new ClientError('Conflict', exceeded);
      const position = Math.min(body.position ?? existing + 1, existing + 1);
      await store.shift(tx, listenerId, position, existing, 1);
      const id = randomUUID();
      const { projectId, regionId, id: loadBalancerId } = loadBalancer;
      await store.insert(tx, {
        id,
        ...{ projectId, regionId, loadBalancerId, listenerId },
        ...settings,
        position,
        provisioningStatus: 'PENDING_CREATE',
        createdAt: clock.now(),
        deletedAt: null,
      });
      const task = { type: 'create_l7policy', createdResources: { l7polices: [id] }, data: { l7policy_id: id } };
      return changes.enqueue(tx, context, loadBalancer, task);
    });

  const update = (context: RequestContext, scope: Scope, id: string, body: UpdateL7Policy): Promise<TaskIds> =>
    parts.changeQueued(context, scope, id, async (tx, policy) => {
      const listener = await requireListener(tx, scope, policy.listenerId);
      const settings = l7PolicySettings(body, policy);
      requireNoErrors([...nameErrors(settings, policy), ...(await policyErrors(tx, scope, settings, listener))]);
      const position = Math.min(body.position ?? policy.position, await store.count(tx, policy.listenerId));
      const changed = changedColumns<Placed, Placed>(policy, { ...settings, position });
      // After a failure the same update is a retry.
      if (isEmpty(changed) && policy.provisioningStatus !== 'ERROR') return null;
      await move(tx, policy, position);
      await store.update(tx, policy.id, { ...changed, provisioningStatus: 'PENDING_UPDATE' });
      return { type: 'update_l7policy', createdResources: { l7polices: [policy.id] } };
    });

  return {
    create,
    update,

    /** Also deletes its rules. A failed deletion can be repeated. */
    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      parts.removeQueued(context, scope, id, async (tx, policy) => {
        if (!policy.deletedAt) {
          const last = await store.count(tx, policy.listenerId);
          await store.shift(tx, policy.listenerId, policy.position + 1, last, -1);
        }
        await store.update(tx, policy.id, { deletedAt: clock.now(), provisioningStatus: 'PENDING_DELETE' });
        return { type: 'delete_l7policy' };
      }),

    async list(scope: Scope, page: PageQuery): Promise<PageInGroups<L7Policy>> {
      const read = (ids: string[]) => store.viewsById(db, ids);
      return pageInGroups(await store.list(db, scope, page), read, (row) => policyToResponse(row, scope.regionName));
    },

    async get(scope: Scope, id: string): Promise<L7Policy> {
      return policyToResponse(requireFound(await store.view(db, scope, id), 'L7 policy', id), scope.regionName);
    },

    ...createL7Rules(deps),
  };
}

/** An empty name is what a policy without a name reads, and removes no name. */
function nameErrors({ name }: L7PolicySettings, current: L7PolicyRow): FieldError[] {
  return name === '' && current.name !== '' ? [{ path: 'name', message: `must be ${nameRule}` }] : [];
}

/** Closes the gap at the old position and opens one at the new position. */
async function move(tx: Tx, { listenerId, position }: L7PolicyRow, to: number): Promise<void> {
  await store.shift(tx, listenerId, position + 1, to, -1);
  await store.shift(tx, listenerId, to, position - 1, 1);
}

/** Call with the lock of the load balancer. @throws ClientError 409 if a deletion of the listener failed */
async function requireListener(tx: Tx, scope: Scope, listenerId: string) {
  const listener = requireFound(await listenerStore.find(tx, scope, listenerId), 'listener', listenerId);
  requireNotDeleted(listener, 'listener');
  return listener;
}
