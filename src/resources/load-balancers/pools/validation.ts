/** Pure: the rules of pools (`drivers/load-balancer-rules.ts`) applied to requests. `path` precedes the field names. */
import { isDeepStrictEqual } from 'node:util';
import { monitorViolations, poolViolations, prefixed } from '../../../drivers/load-balancer-rules.ts';
import { isRequestPath } from '../../../drivers/load-balancer-text.ts';
import type { ListenerProtocol, PoolProtocol } from '../../../drivers/load-balancer.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import { desiredMonitor, desiredPool, withoutPem } from '../desired.ts';
import type { SecretReference } from '../references.ts';
import type { PoolSettings } from './normalize.ts';
import type { HealthMonitor, UpdatePool } from './schema.ts';

/**
 * `listeners` are the protocols of the listeners that use the pool, `address` is that of the load balancer. A monitor that
 * `before` had is not checked again.
 */
export function poolErrors(
  pool: PoolSettings,
  listeners: ListenerProtocol[],
  address: string,
  path: string,
  before: PoolSettings | null = null,
): FieldError[] {
  const { healthMonitor } = pool;
  const isNew = healthMonitor && !isDeepStrictEqual(healthMonitor, before?.healthMonitor);
  return [
    ...prefixed(path, poolViolations(desiredPool(pool, withoutPem), listeners, address)),
    ...(isNew ? prefixed(`${path}healthmonitor.`, apiLimits(healthMonitor)) : []),
  ];
}

export function monitorErrors(monitor: HealthMonitor, protocol: PoolProtocol): FieldError[] {
  return [...monitorViolations(desiredMonitor(monitor), protocol), ...apiLimits(monitor)];
}

const visibleAscii = /^[\x21-\x7e]*$/;

/** What the API rejects although drivers support it. */
function apiLimits({ delay, timeout, url_path: path }: HealthMonitor): FieldError[] {
  const errors: FieldError[] = [];
  if (timeout >= delay) errors.push({ path: 'timeout', message: `must be less than delay (${delay})` });
  if (path !== null && isRequestPath(path) && !visibleAscii.test(path)) {
    errors.push({ path: 'url_path', message: 'must contain only visible ASCII characters' });
  }
  return errors;
}

/** A patch without a type keeps the type of the current monitor. */
export function missingMonitorType(body: UpdatePool, pool: PoolSettings): FieldError[] {
  if (!body.healthmonitor || body.healthmonitor.type || pool.healthMonitor) return [];
  return [{ path: 'healthmonitor.type', message: 'is required: the pool has no health monitor' }];
}

/** The secrets that a pool uses and did not use `before`. */
export function poolSecrets(pool: PoolSettings, before: PoolSettings | null, path: string): SecretReference[] {
  const named = [
    { field: 'ca_secret_id', kind: 'ca', id: pool.caSecretId, current: before?.caSecretId },
    { field: 'crl_secret_id', kind: 'crl', id: pool.crlSecretId, current: before?.crlSecretId },
    { field: 'secret_id', kind: 'certificate', id: pool.secretId, current: before?.secretId },
  ] as const;
  return named.flatMap(({ field, kind, id, current }) =>
    id === null || id === current ? [] : [{ id, kind, path: `${path}${field}` }],
  );
}
