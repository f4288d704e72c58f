/** The members of a pool as resources of their own. */
import { isDeepStrictEqual } from 'node:util';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, requireNoErrors } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { MemberRules } from '../../../platform/member-networks.ts';
import { compareAddresses } from '../../../platform/network-address.ts';
import { type Collection, pageOf, requireFound, type TaskIds } from '../../service-kit.ts';
import type { createPartChanges } from '../locked-changes.ts';
import type { LbPool } from '../pools/schema.ts';
import * as poolStore from '../pools/store.ts';
import type { LockedPool } from '../pools/store.ts';
import { referenceErrors, type SecretsForUse } from '../references.ts';
import * as loadBalancerStore from '../store.ts';
import type { MemberRow, PoolRow } from '../table.ts';
import { newMemberSettings, patchedMember } from './normalize.ts';
import { endpointOf, newMember } from './replacement.ts';
import { type CreateMember, type ListMembers, maxMembers, type Member, type UpdateMember } from './schema.ts';
import * as store from './store.ts';
import { memberErrors, placementErrors } from './validation.ts';

export type ChangePool = ReturnType<typeof createPartChanges<LockedPool>>['change'];

interface MembersDeps {
  change: ChangePool;
  secrets: SecretsForUse;
  memberRules: MemberRules;
  /** @throws ClientError 404 */
  view(scope: Scope, poolId: string): Promise<LbPool>;
}

export function createMembers({ change, secrets, memberRules, view }: MembersDeps) {
  return {
    createMember: (context: RequestContext, scope: Scope, poolId: string, body: CreateMember): Promise<TaskIds> =>
      change(context, scope, poolId, async (tx, pool) => {
        const settings = newMemberSettings(body);
        const subnets = settings.subnetId === null ? [] : [{ id: settings.subnetId, path: 'subnet_id' }];
        requireNoErrors([
          ...memberErrors(settings, pool),
          ...placementErrors(settings, memberRules(scope.regionId)),
          ...(await referenceErrors(tx, secrets, scope, { secrets: [], subnets })),
        ]);
        const { members: current } = pool;
        const same = current.find((member) => endpointOf(member) === endpointOf(settings));
        if (same) {
          const endpoint = `${same.address} port ${same.protocolPort}`;
          throw new ClientError('Conflict', `pool ${pool.id} already has a member at ${endpoint}: ${same.id}`);
        }
        if (current.length >= maxMembers) {
          throw new ClientError('Conflict', `pool ${pool.id} already has the maximum of ${maxMembers} members`);
        }
        const member = newMember(pool, settings, (current.at(-1)?.position ?? -1) + 1);
        await write(tx, pool, member);
        await loadBalancerStore.limitMembers(tx, pool.loadBalancerId);
        return { type: 'create_lbmember', createdResources: { members: [member.id] }, data: { member_id: member.id } };
      }),

    updateMember: (
      context: RequestContext,
      scope: Scope,
      poolId: string,
      memberId: string,
      body: UpdateMember,
    ): Promise<TaskIds> =>
      change(context, scope, poolId, async (tx, pool) => {
        const member = withId(pool.members, memberId);
        const settings = patchedMember(member, body);
        // The address and port cannot change and were checked when the member was created.
        const isChecked = body.monitor_address === undefined && body.monitor_port === undefined;
        const misplaced = isChecked ? [] : placementErrors(settings, memberRules(scope.regionId));
        requireNoErrors([
          ...memberErrors(settings, pool),
          ...misplaced.filter(({ path }) => path.startsWith('monitor_')),
        ]);
        // After a failure the same update is a retry.
        if (isDeepStrictEqual(settings, member) && pool.provisioningStatus !== 'ERROR') return null;
        await write(tx, pool, settings);
        return { type: 'update_lbmember', createdResources: { members: [member.id] }, data: { member_id: member.id } };
      }),

    deleteMember: (context: RequestContext, scope: Scope, poolId: string, memberId: string): Promise<TaskIds> =>
      change(context, scope, poolId, async (tx, pool) => {
        const member = withId(pool.members, memberId);
        await store.remove(tx, [member]);
        await poolStore.update(tx, pool.id, { provisioningStatus: 'PENDING_UPDATE' });
        return { type: 'delete_lbmember', data: { member_id: member.id } };
      }),

    async listMembers(scope: Scope, poolId: string, query: ListMembers): Promise<Collection<Member>> {
      return toPage((await view(scope, poolId)).members, query);
    },

    async getMember(scope: Scope, poolId: string, memberId: string): Promise<Member> {
      const { members } = await view(scope, poolId);
      return withId(members, memberId);
    },
  };
}

function withId<Row extends { id: string }>(members: Row[], id: string): Row {
  const found = members.find((member) => member.id === id.toLowerCase());
  return requireFound(found, 'member', id);
}

async function write(tx: Tx, pool: PoolRow, member: MemberRow): Promise<void> {
  await store.write(tx, [member]);
  await poolStore.update(tx, pool.id, { provisioningStatus: 'PENDING_UPDATE' });
}

/** `members` are in the order of their creation: that of the latest list, then those that were created since. */
function toPage(members: Member[], { order_by = 'address.asc', ...page }: ListMembers): Collection<Member> {
  const [field, direction] = order_by.split('.');
  const byAddress = (a: Member, b: Member) =>
    compareAddresses(a.address, b.address) || a.protocol_port - b.protocol_port;
  const sorted = field === 'address' ? members.toSorted(byAddress) : [...members];
  if (direction === 'desc') sorted.reverse();
  return pageOf(sorted, page);
}
