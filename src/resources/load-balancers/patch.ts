/** Pure: shared by the normalization of listener, pool and member bodies. */
import type { UpdatePool } from './pools/schema.ts';
import type { PoolRow } from './table.ts';

/** UUIDs are accepted in any case and stored and compared in lower case. */
export function normalizeId(id: string | null | undefined): string | null {
  return id?.toLowerCase() ?? null;
}

/** The value of a field after a patch: an absent field keeps the current value. */
export function patched<Given, Value>(given: Given | undefined, current: Value, read: (given: Given) => Value): Value {
  return given === undefined ? current : read(given);
}

export type Timeouts = Pick<PoolRow, 'timeoutClientData' | 'timeoutMemberConnect' | 'timeoutMemberData'>;
type TimeoutFields = Pick<UpdatePool, 'timeout_client_data' | 'timeout_member_connect' | 'timeout_member_data'>;

export const noTimeouts: Timeouts = { timeoutClientData: null, timeoutMemberConnect: null, timeoutMemberData: null };

export function patchedTimeouts(body: TimeoutFields, current: Timeouts): Timeouts {
  const {
    timeout_client_data: timeoutClientData = current.timeoutClientData,
    timeout_member_connect: timeoutMemberConnect = current.timeoutMemberConnect,
    timeout_member_data: timeoutMemberData = current.timeoutMemberData,
  } = body;
  return { timeoutClientData, timeoutMemberConnect, timeoutMemberData };
}
