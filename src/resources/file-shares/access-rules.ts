/** Access rules of file shares: which networks may mount a share. A change locks the share and makes no task. */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { canonicalNetwork } from '../../platform/network-address.ts';
import type { Tx } from '../../platform/db.ts';
import { type ChangeUnderLock, type Collection, pageOf, requireFound, type ServiceDeps } from '../service-kit.ts';
import type { PageQuery } from '../store-kit.ts';
import { isDenied } from './desired.ts';
import { type AccessRule, type CreateAccessRule, maxAccessRules } from './schema.ts';
import * as store from './store.ts';
import type { AccessRuleRow, FileShareRow } from './store.ts';

interface AccessRulesDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'tasks'> {
  change: ChangeUnderLock<FileShareRow>;
  /** @throws ClientError 404 */
  requireShare(scope: Scope, id: string): Promise<unknown>;
}

export function createAccessRules({ db, clock, tasks, change, requireShare }: AccessRulesDeps) {
  /** Raises the generation, so that the host follows the rules of the share. */
  const requestReconcile = async (tx: Tx, context: RequestContext, share: FileShareRow): Promise<void> => {
    await store.update(tx, share.id, { generation: share.generation + 1 });
    await tasks.requestReconcile(tx, keyOf(share), context.actor);
  };

  return {
    /** For an invalid body. */
    errorsOfAccessRule: ({ ip_address: address }: ValidFields<CreateAccessRule>): FieldError[] =>
      address === undefined ? [] : prefixErrors(canonicalNetwork(address)!, 'ip_address'),

    createAccessRule: (
      context: RequestContext,
      scope: Scope,
      id: string,
      body: CreateAccessRule,
    ): Promise<AccessRule> =>
      change(context, scope, id, async (tx, share) => {
        requireOnHost(share);
        const rules = await store.accessRules(tx, id);
        const rule = newAccessRule(id, body, createdAfter(rules, clock.now()));
        requireNoErrors(prefixErrors(rule.network, 'ip_address'));
        const sameNetwork = rules.filter((other) => other.network === rule.network);
        if (sameNetwork.some((other) => !isDenied(other))) {
          throw new ClientError(
            'Conflict',
            `file share ${id} already has an access rule for ${rule.network}; delete it first`,
          );
        }
        if (rules.length - sameNetwork.length >= maxAccessRules) {
          throw new ClientError('Conflict', `file share ${id} has ${maxAccessRules} access rules, the maximum`);
        }
        // A rule that is being deleted makes room at once: clients replace a rule by deleting and creating it.
        await store.removeAccessRules(tx, sameNetwork);
        await store.insertAccessRules(tx, [rule]);
        await requestReconcile(tx, context, share);
        return toAccessRule(rule);
      }),

    async listAccessRules(scope: Scope, id: string, page: PageQuery): Promise<Collection<AccessRule>> {
      await requireShare(scope, id);
      const rules = await store.accessRules(db, id);
      return pageOf(rules.map(toAccessRule), page, maxAccessRules);
    },

    deleteAccessRule: (context: RequestContext, scope: Scope, id: string, ruleId: string): Promise<void> =>
      change(context, scope, id, async (tx, share) => {
        requireOnHost(share);
        const rules = await store.accessRules(tx, id);
        const found = rules.find((other) => other.id === ruleId);
        const rule = requireFound(found, 'access rule', ruleId);
        if (isDenied(rule) && rule.state !== 'error') return;
        await store.denyAccessRule(tx, ruleId, clock.now());
        await requestReconcile(tx, context, share);
      }),
  };
}

export function keyOf({ id, regionId }: Pick<FileShareRow, 'id' | 'regionId'>) {
  return { resource: 'file_share', id, regionId };
}

/** @throws ClientError 409 when the share was never created on the host, or its deletion has begun */
export function requireOnHost(share: FileShareRow): void {
  if (share.observedSize !== null && !share.deletedAt) return;
  throw new ClientError('Conflict', `file share ${share.id} is in status ${share.status}; it can only be deleted`);
}

/** The rules of a new share, in the order of the request. */
export function newAccessRules(fileShareId: string, rules: CreateAccessRule[], now: Date): AccessRuleRow[] {
  return rules.map((rule, i) => newAccessRule(fileShareId, rule, new Date(now.getTime() + i)));
}

/** The errors in the access rules of a create request. */
export function accessErrors(rules: CreateAccessRule[]): FieldError[] {
  const networks = rules.map((rule) => canonicalNetwork(rule.ip_address)!);
  return networks.flatMap((network, i) => {
    const path = `access.${i}.ip_address`;
    const first = networks.indexOf(network);
    const repeated = first < i ? [{ path, message: `is the same network as access.${first} (${network})` }] : [];
    return [...prefixErrors(network, path), ...repeated];
  });
}

/** NFS-Ganesha's configuration has no three-digit prefixes; from /120 on the driver lists the addresses instead. */
function prefixErrors(network: string, path: string): FieldError[] {
  const prefix = Number(network.split('/')[1]);
  if (prefix < 100 || prefix > 119) return [];
  return [{ path, message: 'IPv6 prefixes /100 to /119 are not supported; use /99 or shorter, or /120 or longer' }];
}

/** Rules are listed by their creation, so no two rules of a share have the same millisecond. */
function createdAfter(rules: AccessRuleRow[], now: Date): Date {
  return new Date(Math.max(now.getTime(), ...rules.map((rule) => rule.createdAt.getTime() + 1)));
}

function newAccessRule(fileShareId: string, rule: CreateAccessRule, now: Date): AccessRuleRow {
  return {
    id: randomUUID(),
    fileShareId,
    accessLevel: rule.access_mode,
    network: canonicalNetwork(rule.ip_address)!,
    accessTo: rule.ip_address,
    state: 'queued_to_apply',
    createdAt: now,
    deletedAt: null,
  };
}

function toAccessRule(rule: AccessRuleRow): AccessRule {
  return { id: rule.id, access_level: rule.accessLevel, access_to: rule.accessTo, state: rule.state };
}
