/** Pure: from what a client writes to what the row of a listener says, in one spelling, so that equal means equal. */
import { isDeepStrictEqual } from 'node:util';
import { canonicalNetwork } from '../../../platform/network-address.ts';
import { idOf } from '../pools/settings.ts';
import type { CreateListener, NestedListener, UpdateListener } from './schema.ts';
import type { ListenerRow } from './store.ts';

/** What a client decides about a listener. */
export type ListenerSettings = Pick<
  ListenerRow,
  | 'name'
  | 'protocol'
  | 'protocolPort'
  | 'connectionLimit'
  | 'allowedCidrs'
  | 'insertXForwarded'
  | 'secretId'
  | 'sniSecretIds'
  | 'userList'
  | 'timeoutClientData'
  | 'timeoutMemberConnect'
  | 'timeoutMemberData'
  | 'adminStateUp'
>;

const defaultConnectionLimit = 100_000;

export function newSettings(body: CreateListener | NestedListener): ListenerSettings {
  return {
    name: body.name,
    protocol: body.protocol,
    protocolPort: body.protocol_port,
    connectionLimit: body.connection_limit ?? defaultConnectionLimit,
    allowedCidrs: networksOf(body.allowed_cidrs ?? null),
    insertXForwarded: body.insert_x_forwarded ?? false,
    // "" is what some clients write for none.
    secretId: idOf(body.secret_id || null),
    sniSecretIds: idsOf(body.sni_secret_id),
    userList: body.user_list ?? [],
    timeoutClientData: body.timeout_client_data ?? null,
    timeoutMemberConnect: body.timeout_member_connect ?? null,
    timeoutMemberData: body.timeout_member_data ?? null,
    adminStateUp: true,
  };
}

/** What a listener becomes by a patch: absent keeps, null removes, lists are replaced whole. */
export function settingsAfter(listener: ListenerSettings, body: UpdateListener): ListenerSettings {
  const given = <G, P>(value: G | undefined, present: P, read: (value: G) => P): P =>
    value === undefined ? present : read(value);
  const asIs = <V>(value: V) => value;
  return {
    name: body.name ?? listener.name,
    protocol: listener.protocol,
    protocolPort: listener.protocolPort,
    connectionLimit: body.connection_limit ?? listener.connectionLimit,
    allowedCidrs: given(body.allowed_cidrs, listener.allowedCidrs, networksOf),
    insertXForwarded: listener.insertXForwarded,
    secretId: given(body.secret_id, listener.secretId, idOf),
    sniSecretIds: given(body.sni_secret_id, listener.sniSecretIds, idsOf),
    userList: given(body.user_list, listener.userList, (users) => users ?? []),
    timeoutClientData: given(body.timeout_client_data, listener.timeoutClientData, asIs),
    timeoutMemberConnect: given(body.timeout_member_connect, listener.timeoutMemberConnect, asIs),
    timeoutMemberData: given(body.timeout_member_data, listener.timeoutMemberData, asIs),
    adminStateUp: body.admin_state_up ?? listener.adminStateUp,
  };
}

/** Those of the settings that differ from the row. */
export function changedSettings(listener: ListenerSettings, settings: ListenerSettings): Partial<ListenerSettings> {
  const changed = Object.entries(settings).filter(
    ([field, value]) => !isDeepStrictEqual(value, listener[field as keyof ListenerSettings]),
  );
  return Object.fromEntries(changed);
}

function idsOf(ids: string[] | null | undefined): string[] {
  return (ids ?? []).map((id) => id.toLowerCase());
}

/**
 * Each network in its one spelling, but for a single address, which stays without a prefix where it was given so: clients
 * compare what they read with what they wrote.
 */
function networksOf(networks: string[] | null): string[] | null {
  return (
    networks &&
    networks.map((text) => {
      const network = canonicalNetwork(text)!;
      return text.includes('/') ? network : network.slice(0, network.indexOf('/'));
    })
  );
}
