/** Pure: shared by the normalization of listener, pool and member bodies. */

/** UUIDs are accepted in any case and stored and compared in lower case. */
export function normalizeId(id: string | null | undefined): string | null {
  return id?.toLowerCase() ?? null;
}

/** The value of a field after a patch: an absent field keeps the current value. */
export function patched<Given, Value>(given: Given | undefined, current: Value, read: (given: Given) => Value): Value {
  return given === undefined ? current : read(given);
}

interface Timeouts {
  timeoutClientData: number | null;
  timeoutMemberConnect: number | null;
  timeoutMemberData: number | null;
}

interface TimeoutFields {
  timeout_client_data?: number | null;
  timeout_member_connect?: number | null;
  timeout_member_data?: number | null;
}

const noTimeouts: Timeouts = { timeoutClientData: null, timeoutMemberConnect: null, timeoutMemberData: null };

/** The timeouts of a new listener or pool, or those after a patch. */
export function patchedTimeouts(body: TimeoutFields, current = noTimeouts): Timeouts {
  const {
    timeout_client_data: timeoutClientData = current.timeoutClientData,
    timeout_member_connect: timeoutMemberConnect = current.timeoutMemberConnect,
    timeout_member_data: timeoutMemberData = current.timeoutMemberData,
  } = body;
  return { timeoutClientData, timeoutMemberConnect, timeoutMemberData };
}
