/** Pure: request bodies as column values in canonical spelling, so that equal settings compare as equal. */
import { canonicalAddress } from '../../../platform/network-address.ts';
import { normalizeId } from '../patch.ts';
import type { MemberRow } from '../table.ts';
import type { CreateMember, UpdateMember } from './schema.ts';

/** The columns that a client decides. */
export type MemberSettings = Omit<MemberRow, 'id' | 'poolId' | 'position' | 'operatingStatus'>;

export function newMemberSettings(body: CreateMember): MemberSettings {
  return {
    address: canonicalAddress(body.address),
    protocolPort: body.protocol_port,
    weight: body.weight ?? 1,
    backup: body.backup ?? false,
    adminStateUp: body.admin_state_up ?? true,
    monitorAddress: body.monitor_address ? canonicalAddress(body.monitor_address) : null,
    monitorPort: body.monitor_port ?? null,
    subnetId: normalizeId(body.subnet_id),
    instanceId: normalizeId(body.instance_id),
  };
}

/** Absent fields keep their value, null removes it. */
export function patchedMember(member: MemberRow, body: UpdateMember): MemberRow {
  const { monitor_address: monitorAddress, monitor_port: monitorPort } = body;
  return {
    ...member,
    weight: body.weight ?? member.weight,
    backup: body.backup ?? member.backup,
    adminStateUp: body.admin_state_up ?? member.adminStateUp,
    ...(monitorAddress !== undefined && { monitorAddress: monitorAddress && canonicalAddress(monitorAddress) }),
    ...(monitorPort !== undefined && { monitorPort }),
  };
}
