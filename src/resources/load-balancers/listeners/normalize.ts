/** Pure: request bodies as column values in canonical spelling, so that equal settings compare as equal. */
import { canonicalNetwork } from '../../../platform/network-address.ts';
import { normalizeId, noTimeouts, patched, patchedTimeouts } from '../patch.ts';
import type { ListenerRow, PartColumn } from '../table.ts';
import type { CreateListener, NestedListener, UpdateListener } from './schema.ts';

/** The columns that a client decides, without the default pool. */
export type ListenerSettings = Omit<ListenerRow, PartColumn | 'defaultPoolId'>;

const defaultConnectionLimit = 100_000;

/** -1 means the default, as in the official API. */
function connectionLimitOf(given: number | undefined, current: number): number {
  return given === -1 ? defaultConnectionLimit : (given ?? current);
}

const defaults = {
  connectionLimit: defaultConnectionLimit,
  allowedCidrs: null,
  secretId: null,
  sniSecretIds: [],
  userList: [],
  ...noTimeouts,
  adminStateUp: true,
};

export function newListenerSettings(body: CreateListener | NestedListener): ListenerSettings {
  const { name, protocol, protocol_port: protocolPort, insert_x_forwarded: insertXForwarded = false } = body;
  // Some clients send "" for no secret.
  const patch = { ...body, secret_id: body.secret_id || null };
  return patchedListenerSettings({ ...defaults, name, protocol, protocolPort, insertXForwarded }, patch);
}

/** Absent fields keep their value, null removes it, lists are replaced. */
export function patchedListenerSettings(listener: ListenerSettings, body: UpdateListener): ListenerSettings {
  return {
    name: body.name ?? listener.name,
    protocol: listener.protocol,
    protocolPort: listener.protocolPort,
    connectionLimit: connectionLimitOf(body.connection_limit, listener.connectionLimit),
    allowedCidrs: patched(body.allowed_cidrs, listener.allowedCidrs, normalizeNetworks),
    insertXForwarded: listener.insertXForwarded,
    secretId: patched(body.secret_id, listener.secretId, normalizeId),
    sniSecretIds: patched(body.sni_secret_id, listener.sniSecretIds, normalizeIds),
    userList: patched(body.user_list, listener.userList, (users) => users ?? []),
    ...patchedTimeouts(body, listener),
    adminStateUp: body.admin_state_up ?? listener.adminStateUp,
  };
}

function normalizeIds(ids: string[] | null): string[] {
  return (ids ?? []).map((id) => id.toLowerCase());
}

/** A single address keeps its missing prefix: clients compare what they read with what they wrote. */
function normalizeNetworks(networks: string[] | null): string[] | null {
  return (
    networks &&
    networks.map((text) => {
      const network = canonicalNetwork(text)!;
      return text.includes('/') ? network : network.slice(0, network.indexOf('/'));
    })
  );
}
