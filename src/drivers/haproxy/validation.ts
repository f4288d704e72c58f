/** Pure: why this host cannot serve a load balancer. Every setting either works or is reported here. */
import type { FieldError } from '../../errors/catalogue.ts';
import { DriverError } from '../driver.ts';
import { l7LimitViolation, l7PolicyViolations, l7RuleViolations } from '../l7-rules.ts';
import {
  listenerMode,
  listenerViolations,
  memberListViolations,
  poolViolations,
  portViolations,
  prefixed,
} from '../load-balancer-rules.ts';
import { isPlainAddress, isToken } from '../load-balancer-text.ts';
import { addressesOf, type DesiredListener, type DesiredLoadBalancer, type DesiredPool } from '../load-balancer.ts';
import { isId } from '../id-files.ts';

/** What depends on the programs of the host. */
export interface Capabilities {
  udp: boolean;
  ping: boolean;
}

const everything: Capabilities = { udp: true, ping: true };

/** @throws DriverError, permanent, that names every violation */
export function requireValid(desired: DesiredLoadBalancer, capabilities?: Capabilities): void {
  const text = violationsOf(desired, capabilities).join('; ');
  if (text === '') return;
  throw new DriverError(`invalid load balancer: ${text}`, { customerMessage: text, retryable: false });
}

/** Everything that cannot be served, for the client; empty: valid. */
export function violationsOf(desired: DesiredLoadBalancer, capabilities = everything): string[] {
  const { tenant, listeners, pools } = desired;
  const policies = listeners.flatMap(({ l7Policies }) => l7Policies);
  const parts = [...listeners, ...policies, ...policies.flatMap(({ rules }) => rules)];
  const ids = [desired, ...parts, ...pools, ...pools.flatMap(({ members }) => members)].map(({ id }) => id);
  const found: string[] = [];
  if (!isToken(tenant)) found.push('the tenant must be a name');
  if (!addressesOf(desired).every(isPlainAddress)) found.push('the address of the load balancer must be an IP address');
  if (!ids.every(isId)) found.push('every id must be a UUID');
  if (new Set(ids).size < ids.length) found.push('every id must be unique');
  const add = (prefix: string, violations: FieldError[]) =>
    found.push(...violations.map(({ path, message }) => `${prefix}${path}: ${message}`));
  add('', portViolations(listeners));
  for (const listener of listeners) add(`listener ${listener.id}: `, ofListener(listener, pools, capabilities));
  for (const pool of pools) add(`pool ${pool.id}: `, ofPool(pool, desired, capabilities));
  return found;
}

function ofListener(listener: DesiredListener, pools: DesiredPool[], capabilities: Capabilities): FieldError[] {
  const { protocol, defaultPoolId } = listener;
  const found = [...listenerViolations(listener), ...ofPolicies(listener, pools)];
  if (defaultPoolId !== null && !pools.some(({ id }) => id === defaultPoolId)) {
    found.push({ path: 'default_pool_id', message: `pool ${defaultPoolId} not found` });
  }
  if (listenerMode(protocol) === 'udp' && !capabilities.udp) found.push(notOffered('protocol', 'UDP'));
  return found;
}

function ofPolicies({ protocol, l7Policies }: DesiredListener, pools: DesiredPool[]): FieldError[] {
  const found = l7Policies.flatMap((policy) => {
    const pool = pools.find(({ id }) => id === policy.redirectPoolId);
    const violations = [
      ...l7PolicyViolations(policy, protocol, pool?.protocol ?? null),
      ...policy.rules.flatMap((rule) => prefixed(`rule ${rule.id}: `, l7RuleViolations(rule, protocol))),
    ];
    if (policy.redirectPoolId !== null && !pool) {
      violations.push({ path: 'redirect_pool_id', message: `pool ${policy.redirectPoolId} not found` });
    }
    return prefixed(`L7 policy ${policy.id}: `, violations);
  });
  const rules = l7Policies.flatMap((policy) => policy.rules);
  const message = l7LimitViolation(rules, l7Policies.length);
  return message ? [...found, { path: 'L7 policies', message }] : found;
}

function ofPool(pool: DesiredPool, desired: DesiredLoadBalancer, capabilities: Capabilities): FieldError[] {
  const found = [
    ...poolViolations(pool, protocolsInFrontOf(pool, desired.listeners), desired.address),
    ...prefixed('members.', memberListViolations(pool.members, pool)),
  ];
  if (pool.protocol === 'UDP' && !capabilities.udp) found.push(notOffered('protocol', 'UDP'));
  if (pool.monitor?.type === 'PING' && !capabilities.ping) found.push(notOffered('healthmonitor.type', 'PING'));
  return found;
}

function notOffered(path: string, what: string): FieldError {
  return { path, message: `${what} is not available in this region` };
}

/** The listeners that use a pool, those that have it as their default pool first. */
export function listenersInFrontOf({ id }: Pick<DesiredPool, 'id'>, listeners: DesiredListener[]): DesiredListener[] {
  const redirects = ({ l7Policies }: DesiredListener) => l7Policies.some(({ redirectPoolId }) => redirectPoolId === id);
  const isDefault = ({ defaultPoolId }: DesiredListener) => defaultPoolId === id;
  return [
    ...listeners.filter(isDefault),
    ...listeners.filter((listener) => !isDefault(listener) && redirects(listener)),
  ];
}

/** The protocols of the listeners that use a pool. */
export function protocolsInFrontOf(pool: Pick<DesiredPool, 'id'>, listeners: DesiredListener[]) {
  return listenersInFrontOf(pool, listeners).map(({ protocol }) => protocol);
}
