/** Pure: from what a client writes to what the rows of a pool say, in one spelling, so that equal means equal. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { canonicalAddress } from '../../../platform/network-address.ts';
import type {
  CreateHealthMonitor,
  CreateMember,
  HealthMonitor,
  MutateSessionPersistence,
  NestedPool,
  SessionPersistence,
  UpdateHealthMonitor,
  UpdateMember,
  UpdatePool,
} from './schema.ts';
import type { MemberRow, PoolRow } from './store.ts';

/** What a client decides about a pool. */
export type PoolSettings = Pick<
  PoolRow,
  | 'name'
  | 'protocol'
  | 'lbAlgorithm'
  | 'adminStateUp'
  | 'caSecretId'
  | 'crlSecretId'
  | 'secretId'
  | 'healthMonitor'
  | 'sessionPersistence'
  | 'timeoutClientData'
  | 'timeoutMemberConnect'
  | 'timeoutMemberData'
>;

/** What a client decides about a member. */
export type MemberSettings = Omit<MemberRow, 'id' | 'poolId' | 'position' | 'operatingStatus'>;

const defaultRetriesDown = 3;

export function newSettings(body: NestedPool): PoolSettings {
  return {
    name: body.name,
    protocol: body.protocol,
    lbAlgorithm: body.lb_algorithm,
    adminStateUp: true,
    caSecretId: idOf(body.ca_secret_id),
    crlSecretId: idOf(body.crl_secret_id),
    secretId: idOf(body.secret_id),
    healthMonitor: body.healthmonitor ? newMonitor(body.healthmonitor, null) : null,
    sessionPersistence: persistenceOf(body.session_persistence),
    timeoutClientData: body.timeout_client_data ?? null,
    timeoutMemberConnect: body.timeout_member_connect ?? null,
    timeoutMemberData: body.timeout_member_data ?? null,
  };
}

/** What a pool becomes by a patch: absent keeps, null removes, nested objects are replaced whole. */
export function settingsAfter(pool: PoolSettings, body: UpdatePool): PoolSettings {
  const given = <G, P>(value: G | undefined, present: P, read: (value: G) => P): P =>
    value === undefined ? present : read(value);
  const asIs = <V>(value: V) => value;
  return {
    name: body.name ?? pool.name,
    protocol: body.protocol ?? pool.protocol,
    lbAlgorithm: body.lb_algorithm ?? pool.lbAlgorithm,
    adminStateUp: body.admin_state_up ?? pool.adminStateUp,
    caSecretId: given(body.ca_secret_id, pool.caSecretId, idOf),
    crlSecretId: given(body.crl_secret_id, pool.crlSecretId, idOf),
    secretId: given(body.secret_id, pool.secretId, idOf),
    healthMonitor: given(body.healthmonitor, pool.healthMonitor, (monitor) => patchedMonitor(monitor, pool)),
    sessionPersistence: given(body.session_persistence, pool.sessionPersistence, persistenceOf),
    timeoutClientData: given(body.timeout_client_data, pool.timeoutClientData, asIs),
    timeoutMemberConnect: given(body.timeout_member_connect, pool.timeoutMemberConnect, asIs),
    timeoutMemberData: given(body.timeout_member_data, pool.timeoutMemberData, asIs),
  };
}

/** A pool has one monitor at most: who takes the place of `present` has its id, so that clients that know it still do. */
export function newMonitor(given: CreateHealthMonitor, present: HealthMonitor | null): HealthMonitor {
  return {
    id: present?.id ?? randomUUID(),
    type: given.type,
    admin_state_up: given.admin_state_up ?? true,
    delay: given.delay,
    timeout: given.timeout,
    max_retries: given.max_retries,
    max_retries_down: given.max_retries_down ?? defaultRetriesDown,
    http_method: given.http_method ?? null,
    http_version: given.http_version ?? null,
    url_path: given.url_path ?? null,
    domain_name: given.domain_name ?? null,
    expected_codes: given.expected_codes ?? null,
  };
}

/** A patch may leave out the type, where there is one to keep; checks.ts refuses it where there is none. */
function patchedMonitor(given: UpdateHealthMonitor | null, pool: PoolSettings): HealthMonitor | null {
  const present = pool.healthMonitor;
  const type = given?.type ?? present?.type;
  return given && type ? newMonitor({ ...given, type }, present) : null;
}

function persistenceOf(given: MutateSessionPersistence | null | undefined): SessionPersistence | null {
  if (!given) return null;
  return {
    type: given.type,
    cookie_name: given.cookie_name ?? null,
    persistence_granularity: given.persistence_granularity ?? null,
    // 0 is what some clients write for none.
    persistence_timeout: given.persistence_timeout || null,
  };
}

/** Schemas take UUIDs in any case, rows and comparisons only in one. */
export function idOf(given: string | null | undefined): string | null {
  return given?.toLowerCase() ?? null;
}

export function memberSettings(given: CreateMember): MemberSettings {
  return {
    address: canonicalAddress(given.address),
    protocolPort: given.protocol_port,
    weight: given.weight ?? 1,
    backup: given.backup ?? false,
    adminStateUp: given.admin_state_up ?? true,
    monitorAddress: given.monitor_address ? canonicalAddress(given.monitor_address) : null,
    monitorPort: given.monitor_port ?? null,
    subnetId: idOf(given.subnet_id),
    instanceId: idOf(given.instance_id),
  };
}

/** What a member becomes by a patch: absent keeps, null removes. */
export function memberAfter(member: MemberRow, body: UpdateMember): MemberRow {
  const { weight, backup, admin_state_up: adminStateUp, monitor_address: address, monitor_port: port } = body;
  return {
    ...member,
    ...(weight !== undefined && { weight }),
    ...(backup !== undefined && { backup }),
    ...(adminStateUp !== undefined && { adminStateUp }),
    ...(address !== undefined && { monitorAddress: address && canonicalAddress(address) }),
    ...(port !== undefined && { monitorPort: port }),
  };
}

/** Those of the settings that differ from the row. */
export function changedSettings(pool: PoolSettings, settings: PoolSettings): Partial<PoolSettings> {
  const changed = Object.entries(settings).filter(
    ([field, value]) => !isDeepStrictEqual(value, pool[field as keyof PoolSettings]),
  );
  return Object.fromEntries(changed);
}
