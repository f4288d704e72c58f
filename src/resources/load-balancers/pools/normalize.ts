/** Pure: request bodies as column values in canonical spelling, so that equal settings compare as equal. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { normalizeId, noTimeouts, patched, patchedTimeouts } from '../patch.ts';
import type { PartColumn, PoolRow } from '../table.ts';
import type {
  CreateHealthMonitor,
  HealthMonitor,
  MutateSessionPersistence,
  NestedPool,
  SessionPersistence,
  UpdateHealthMonitor,
  UpdatePool,
} from './schema.ts';

/** The columns that a client decides. */
export type PoolSettings = Omit<PoolRow, PartColumn>;

const defaultRetriesDown = 3;

/** What checks that send requests use unless a client sets it: stored as null, and shown. */
export const requestDefaults = { http_method: 'GET', url_path: '/', expected_codes: '200' } as const;

const defaults = {
  adminStateUp: true,
  caSecretId: null,
  crlSecretId: null,
  secretId: null,
  healthMonitor: null,
  sessionPersistence: null,
  ...noTimeouts,
};

export function newPoolSettings(body: NestedPool): PoolSettings {
  const { name, protocol, lb_algorithm: lbAlgorithm } = body;
  return patchedPoolSettings({ ...defaults, name, protocol, lbAlgorithm }, body);
}

/** Absent fields keep their value, null removes it, nested objects are replaced. */
export function patchedPoolSettings(pool: PoolSettings, body: UpdatePool): PoolSettings {
  return {
    name: body.name ?? pool.name,
    protocol: body.protocol ?? pool.protocol,
    lbAlgorithm: body.lb_algorithm ?? pool.lbAlgorithm,
    adminStateUp: body.admin_state_up ?? pool.adminStateUp,
    caSecretId: patched(body.ca_secret_id, pool.caSecretId, normalizeId),
    crlSecretId: patched(body.crl_secret_id, pool.crlSecretId, normalizeId),
    secretId: patched(body.secret_id, pool.secretId, normalizeId),
    healthMonitor: patched(body.healthmonitor, pool.healthMonitor, (monitor) => replacedMonitor(monitor, pool)),
    sessionPersistence: patched(body.session_persistence, pool.sessionPersistence, newPersistence),
    ...patchedTimeouts(body, pool),
  };
}

/** A pool has at most one monitor. A monitor that replaces another keeps its id, so that clients still find it. */
export function newHealthMonitor(body: CreateHealthMonitor, current: HealthMonitor | null): HealthMonitor {
  const monitor = normalizedMonitor(body, current?.id ?? randomUUID());
  // Version 0.2.0 stored given defaults. Such a monitor is not changed by an equal one.
  return current && isDeepStrictEqual(monitor, normalizedMonitor(current, current.id)) ? current : monitor;
}

/** A default is unset for any type: a client may send back what it read with another type. */
function normalizedMonitor(body: CreateHealthMonitor, id: string): HealthMonitor {
  const unlessDefault = <T>(value: T | null | undefined, byDefault: T): T | null =>
    value === undefined || value === byDefault ? null : value;
  return {
    id,
    type: body.type,
    admin_state_up: body.admin_state_up ?? true,
    delay: body.delay,
    timeout: body.timeout,
    max_retries: body.max_retries,
    max_retries_down: body.max_retries_down ?? defaultRetriesDown,
    http_method: unlessDefault(body.http_method, requestDefaults.http_method),
    http_version: body.http_version ?? null,
    url_path: unlessDefault(body.url_path, requestDefaults.url_path),
    domain_name: body.domain_name ?? null,
    expected_codes: unlessDefault(body.expected_codes, requestDefaults.expected_codes),
  };
}

/** Without a type the monitor keeps the current one; validation.ts rejects a missing type where there is none. */
function replacedMonitor(body: UpdateHealthMonitor | null, pool: PoolSettings): HealthMonitor | null {
  const type = body?.type ?? pool.healthMonitor?.type;
  return body && type ? newHealthMonitor({ ...body, type }, pool.healthMonitor) : null;
}

function newPersistence(body: MutateSessionPersistence | null | undefined): SessionPersistence | null {
  if (!body) return null;
  return {
    type: body.type,
    cookie_name: body.cookie_name ?? null,
    persistence_granularity: body.persistence_granularity ?? null,
    // Some clients send 0 for no timeout.
    persistence_timeout: body.persistence_timeout || null,
  };
}
