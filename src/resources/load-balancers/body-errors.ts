/**
 * Pure: the rules of new load balancers, listeners and pools, applied to bodies of which some fields are invalid. A rule that
 * needs an invalid field is skipped.
 */
import { prefixed } from '../../drivers/load-balancer-rules.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import { errorsOfNewTags } from '../../tags/tags.ts';
import { l7PolicySettings } from './l7-policies/normalize.ts';
import { newL7RuleSettings } from './l7-policies/rules/normalize.ts';
import type { CreateL7Rule } from './l7-policies/rules/schema.ts';
import type { CreateL7Policy } from './l7-policies/schema.ts';
import { l7PolicyErrors, l7RuleErrors } from './l7-policies/validation.ts';
import { newListenerSettings } from './listeners/normalize.ts';
import type { CreateListener, NestedListener, UpdateListener } from './listeners/schema.ts';
import { listenerErrors } from './listeners/validation.ts';
import { newMemberSettings } from './members/normalize.ts';
import type { CreateMember } from './members/schema.ts';
import { memberListErrors } from './members/validation.ts';
import { unsupportedFields } from './new-load-balancer.ts';
import { newHealthMonitor, newPoolSettings, type PoolSettings } from './pools/normalize.ts';
import type { CreateHealthMonitor, CreatePool, NestedPool, UpdateHealthMonitor, UpdatePool } from './pools/schema.ts';
import { monitorErrors, poolErrors } from './pools/validation.ts';
import type { CreateLoadBalancer } from './schema.ts';

type Listener = ValidFields<NestedListener>;
type Pool = ValidFields<NestedPool>;

export function errorsOfLoadBalancer(body: ValidFields<CreateLoadBalancer>, isInvalid: IsInvalid): FieldError[] {
  const { listeners = [] } = body;
  return [
    ...errorsOfNewTags(body, isInvalid),
    ...unsupportedFields(body, isInvalid),
    ...listeners.flatMap((listener, i) => [
      ...partialListenerErrors(listener, `listeners.${i}.`),
      ...(listener.pools ?? []).flatMap((pool, j) =>
        partialPoolErrors(pool, `listeners.${i}.pools.${j}.`, listener.protocol),
      ),
    ]),
  ];
}

export function errorsOfListener(body: ValidFields<CreateListener>, isInvalid: IsInvalid): FieldError[] {
  const isGiven = (['load_balancer_id', 'loadbalancer_id'] as const).some((name) => body[name] || isInvalid(name));
  return [
    ...(isGiven ? [] : [{ path: 'load_balancer_id', message: 'is required' }]),
    ...partialListenerErrors(body, ''),
  ];
}

export function errorsOfPool(body: ValidFields<CreatePool>, isInvalid: IsInvalid): FieldError[] {
  const isGiven = (['listener_id', 'load_balancer_id', 'loadbalancer_id'] as const).some(
    (name) => body[name] || isInvalid(name),
  );
  const missing = { path: 'load_balancer_id', message: 'is required without listener_id' };
  return [...(isGiven ? [] : [missing]), ...partialPoolErrors(body, '')];
}

/** Users alone: whether other settings fit depends on the protocol of the listener. */
export function errorsOfListenerUpdate({ user_list }: ValidFields<UpdateListener>): FieldError[] {
  return partialListenerErrors({ protocol: 'HTTP', user_list } as Listener, '');
}

/** Rules that depend on the protocol of the pool are not applied, unless the body has it. */
export function errorsOfPoolUpdate(body: ValidFields<UpdatePool>): FieldError[] {
  const { healthmonitor, session_persistence, members } = body;
  const protocol = body.protocol ?? (session_persistence?.type === 'SOURCE_IP' ? 'UDP' : 'HTTP');
  return [
    ...(healthmonitor ? prefixed('healthmonitor.', errorsOfHealthMonitor(healthmonitor)) : []),
    ...partialPoolErrors({ protocol, session_persistence, members: members ?? [] } as Pool, ''),
  ];
}

/** Of the members of any pool. */
export function errorsOfMembers(members: ValidFields<CreateMember[]>): FieldError[] {
  return partialMemberErrors(members, newPoolSettings({ name: '', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' }), '');
}

/** Whether the type fits the pool is not checked. */
export function errorsOfHealthMonitor({ type, ...body }: ValidFields<UpdateHealthMonitor>): FieldError[] {
  if (!type) return [];
  const monitor = newHealthMonitor({ ...body, type } as CreateHealthMonitor, null);
  return monitorErrors(monitor, type === 'UDP-CONNECT' ? 'UDP' : 'HTTP');
}

/** A policy fits an HTTP listener, and a rule one with TLS; whether it is such a listener is not checked. */
export function errorsOfL7Policy({ action, ...body }: ValidFields<CreateL7Policy>): FieldError[] {
  return action ? l7PolicyErrors(l7PolicySettings({ ...body, action }, null), 'HTTP') : [];
}

export function errorsOfL7Rule({ type, compare_type, value, ...body }: ValidFields<CreateL7Rule>): FieldError[] {
  if (!type || !compare_type || value === undefined) return [];
  return l7RuleErrors(newL7RuleSettings({ ...body, type, compare_type, value }), 'TERMINATED_HTTPS');
}

function partialListenerErrors({ protocol, ...body }: Listener, path: string): FieldError[] {
  if (!protocol) return [];
  const users = (body.user_list ?? []) as NestedListener['user_list'];
  const isWhole = users!.every((user) => user.username !== undefined && user.encrypted_password !== undefined);
  const settings = {
    ...body,
    protocol,
    name: '',
    protocol_port: body.protocol_port ?? 1,
    sni_secret_id: body.secret_id ? body.sni_secret_id : [],
    user_list: isWhole ? users! : [],
  };
  return listenerErrors(newListenerSettings(settings as NestedListener), path);
}

function partialPoolErrors(body: Pool, path: string, listener?: Listener['protocol']): FieldError[] {
  const { protocol, healthmonitor, session_persistence, members = [] } = body;
  if (!protocol) return [];
  const settings = newPoolSettings({
    ...body,
    crl_secret_id: body.ca_secret_id ? body.crl_secret_id : null,
    healthmonitor: healthmonitor?.type ? healthmonitor : null,
    // Whether a netmask is valid depends on the address of the load balancer.
    session_persistence: session_persistence?.type ? { ...session_persistence, persistence_granularity: null } : null,
  } as NestedPool);
  return [
    ...poolErrors(settings, listener ? [listener] : [], '', path),
    ...partialMemberErrors(members, settings, `${path}members.`),
  ];
}

function partialMemberErrors(members: ValidFields<CreateMember[]>, pool: PoolSettings, prefix: string): FieldError[] {
  const isWhole = members.every((member) => member.address !== undefined && member.protocol_port !== undefined);
  return isWhole ? memberListErrors((members as CreateMember[]).map(newMemberSettings), pool, prefix, null) : [];
}
