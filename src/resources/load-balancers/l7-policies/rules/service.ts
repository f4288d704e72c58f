/** Rules of the rules of L7 policies. */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../../authz/actor.ts';
import { ClientError, type FieldError, notFound, requireNoErrors, unavailable } from '../../../../errors/catalogue.ts';
import { DriverError } from '../../../../errors/driver-error.ts';
import type { Tx } from '../../../../platform/db.ts';
import {
  changedColumns,
  type Collection,
  isEmpty,
  requireFound,
  type ServiceDeps,
  type TaskIds,
  toCollection,
} from '../../../service-kit.ts';
import type { PageQuery } from '../../../store-kit.ts';
import * as listenerStore from '../../listeners/store.ts';
import { createPartChanges, type LoadBalancerChanges } from '../../locked-changes.ts';
import { ruleToResponse } from '../response.ts';
import * as policyStore from '../store.ts';
import type { L7PolicyRow } from '../store.ts';
import { l7RuleErrors, l7ValueErrors, ruleLimit } from '../validation.ts';
import { type L7RuleSettings, newL7RuleSettings, patchedL7RuleSettings } from './normalize.ts';
import type { CreateL7Rule, L7Rule, UpdateL7Rule } from './schema.ts';
import * as store from './store.ts';
import type { L7RuleRow } from './store.ts';

export interface L7RulesDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  changes: LoadBalancerChanges;
  /** Why a regular expression cannot be used, or null. @throws DriverError without a verdict */
  checkPattern(pattern: string): Promise<string | null>;
}

/** The settings that the check of a pattern depends on. */
const patternOf = ({ type, compareType, value }: L7RuleSettings) => `${type} ${compareType} ${value}`;

export function createL7Rules(deps: L7RulesDeps) {
  const { db, clock, checkPattern } = deps;
  const policies = createPartChanges(deps, 'L7 policy', policyStore.lockL7Policy);
  const parts = createPartChanges(deps, 'L7 rule', store.lockL7Rule);

  /** The error that HAProxy finds in an expression. Call it before the transaction: it starts a program. */
  const patternErrors = async (rule: L7RuleSettings): Promise<FieldError[]> => {
    if (rule.compareType !== 'REGEX' || l7ValueErrors(rule).length > 0) return [];
    const refusal = await checkPattern(rule.value).catch((error: unknown) => {
      if (!(error instanceof DriverError)) throw error;
      throw unavailable(error.customerMessage, { cause: error });
    });
    if (!refusal) return [];
    return [{ path: 'value', message: `is not a regular expression that HAProxy can use: ${refusal}` }];
  };

  /** @throws ClientError 404 if the rule is not one of the policy */
  const view = async (scope: Scope, policyId: string, id: string) => {
    const rule = requireFound(await store.view(db, scope, id), 'L7 rule', id);
    if (rule.policyId !== policyId.toLowerCase()) throw notFound('L7 rule', id);
    return rule;
  };

  return {
    createRule: async (
      context: RequestContext,
      scope: Scope,
      policyId: string,
      body: CreateL7Rule,
    ): Promise<TaskIds> => {
      const settings = newL7RuleSettings(body);
      const invalid = await patternErrors(settings);
      return policies.changeQueued(context, scope, policyId, async (tx, policy) => {
        await requireValid(tx, scope, policy, settings, invalid);
        await requireRoom(tx, policy, settings, null);
        const id = randomUUID();
        const { projectId, regionId, loadBalancerId } = policy;
        await store.insert(tx, {
          id,
          ...{ projectId, regionId, loadBalancerId, policyId: policy.id },
          ...settings,
          provisioningStatus: 'PENDING_CREATE',
          createdAt: clock.now(),
          deletedAt: null,
        });
        return { type: 'create_l7rule', createdResources: { l7rules: [id] }, data: { l7rule_id: id } };
      });
    },

    updateRule: async (
      context: RequestContext,
      scope: Scope,
      policyId: string,
      id: string,
      body: UpdateL7Rule,
    ): Promise<TaskIds> => {
      const checked = patchedL7RuleSettings(await view(scope, policyId, id), body);
      const invalid = await patternErrors(checked);
      return parts.changeQueued(context, scope, id, async (tx, rule) => {
        const settings = patchedL7RuleSettings(rule, body);
        if (settings.compareType === 'REGEX' && patternOf(settings) !== patternOf(checked)) {
          throw new ClientError('Conflict', `L7 rule ${id} was changed at the same time; try again`);
        }
        const policy = requireFound(await policyStore.find(tx, scope, rule.policyId), 'L7 policy', rule.policyId);
        await requireValid(tx, scope, policy, settings, invalid);
        await requireRoom(tx, policy, settings, rule);
        const changed = changedColumns<L7RuleSettings, L7RuleSettings>(rule, settings);
        // After a failure the same update is a retry.
        if (isEmpty(changed) && rule.provisioningStatus !== 'ERROR') return null;
        await store.update(tx, rule.id, { ...changed, provisioningStatus: 'PENDING_UPDATE' });
        return { type: 'put_l7rule', createdResources: { l7rules: [rule.id] } };
      });
    },

    deleteRule: async (context: RequestContext, scope: Scope, policyId: string, id: string): Promise<TaskIds> => {
      await view(scope, policyId, id);
      return parts.removeQueued(context, scope, id, async (tx, rule) => {
        await store.update(tx, rule.id, { deletedAt: clock.now(), provisioningStatus: 'PENDING_DELETE' });
        return { type: 'delete_l7rule' };
      });
    },

    async listRules(scope: Scope, policyId: string, page: PageQuery): Promise<Collection<L7Rule>> {
      const policy = requireFound(await policyStore.find(db, scope, policyId), 'L7 policy', policyId);
      return toCollection(await store.list(db, scope, policy.id, page), ruleToResponse, scope.regionName);
    },

    async getRule(scope: Scope, policyId: string, id: string): Promise<L7Rule> {
      return ruleToResponse(await view(scope, policyId, id), scope.regionName);
    },
  };
}

/** @throws ClientError 400 with all invalid fields, 409 if the policy is being deleted */
async function requireValid(
  tx: Tx,
  scope: Scope,
  policy: L7PolicyRow,
  settings: L7RuleSettings,
  invalid: FieldError[],
): Promise<void> {
  const listener = await listenerStore.find(tx, scope, policy.listenerId);
  if (!listener || listener.deletedAt || policy.deletedAt) {
    throw new ClientError('Conflict', `L7 policy ${policy.id} is being deleted`);
  }
  requireNoErrors([...l7RuleErrors(settings, listener.protocol), ...invalid]);
}

/** `rule` is the rule that gets the settings; null: a new one. @throws ClientError 409 */
async function requireRoom(tx: Tx, policy: L7PolicyRow, settings: L7RuleSettings, rule: L7RuleRow | null) {
  const others = (await policyStore.comparisonsOf(tx, policy.listenerId)).filter(({ id }) => id !== rule?.id);
  const exceeded = ruleLimit(settings, policy.id, others);
  if (exceeded) throw new ClientError('Conflict', exceeded);
}
