/**
 * Pure: the rules of load balancers and their parts, applied to bodies of which some fields are invalid. A rule that needs an
 * invalid field, or the row that an update changes, is skipped.
 */
import { prefixed } from '../../drivers/load-balancer-rules.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import type { MemberRule, MemberRules } from '../../platform/member-networks.ts';
import { errorsOfNewTags } from '../../tags/tags.ts';
import { l7PolicySettings } from './l7-policies/normalize.ts';
import { newL7RuleSettings } from './l7-policies/rules/normalize.ts';
import type { CreateL7Rule, UpdateL7Rule } from './l7-policies/rules/schema.ts';
import type { CreateL7Policy } from './l7-policies/schema.ts';
import { l7PolicyErrors, l7RuleErrors } from './l7-policies/validation.ts';
import { newListenerSettings } from './listeners/normalize.ts';
import type { CreateListener, NestedListener, UpdateListener } from './listeners/schema.ts';
import { listenerErrors, portErrors } from './listeners/validation.ts';
import { newMemberSettings } from './members/normalize.ts';
import type { CreateMember } from './members/schema.ts';
import { memberListErrors, placementErrors } from './members/validation.ts';
import { unsupportedFields } from './new-load-balancer.ts';
import { newHealthMonitor, newPoolSettings, type PoolSettings } from './pools/normalize.ts';
import type { CreateHealthMonitor, CreatePool, NestedPool, PatchHealthMonitor, UpdatePool } from './pools/schema.ts';
import { monitorErrors, poolErrors } from './pools/validation.ts';
import type { CreateLoadBalancer } from './schema.ts';

type Listener = ValidFields<NestedListener>;
type Pool = ValidFields<NestedPool>;

export function errorsOfLoadBalancer(
  body: ValidFields<CreateLoadBalancer>,
  rule: MemberRule | null,
  isInvalid: IsInvalid,
): FieldError[] {
  const { listeners = [] } = body;
  return [
    ...errorsOfNewTags(body, isInvalid),
    ...unsupportedFields(body),
    ...partialPortErrors(listeners),
    ...listeners.flatMap((listener, i) => [
      ...partialListenerErrors(listener, `listeners.${i}.`),
      ...(listener.pools ?? []).flatMap((pool, j) =>
        partialPoolErrors(pool, `listeners.${i}.pools.${j}.`, rule, listener.protocol),
      ),
    ]),
  ];
}

/** A listener without a valid protocol and port gets a port of its own. */
function partialPortErrors(listeners: Listener[]): FieldError[] {
  const settings = listeners.map(({ protocol, protocol_port: port }, i) => {
    const isKnown = protocol !== undefined && port !== undefined;
    const place = isKnown ? { protocol, protocol_port: port } : { protocol: 'TCP' as const, protocol_port: -i };
    return newListenerSettings({ name: '', ...place });
  });
  return portErrors(settings);
}

export function errorsOfListener(body: ValidFields<CreateListener>, isInvalid: IsInvalid): FieldError[] {
  const isGiven = (['load_balancer_id', 'loadbalancer_id'] as const).some((name) => body[name] || isInvalid(name));
  return [
    ...(isGiven ? [] : [{ path: 'load_balancer_id', message: 'is required' }]),
    ...partialListenerErrors(body, ''),
  ];
}

/** Errors of new and changed pools and members. `memberRules`: where the members of a region may be. */
export function poolBodyErrors(memberRules: MemberRules) {
  const inRegion =
    <Body>(errorsOf: (body: Body, rule: MemberRule | null, isInvalid: IsInvalid) => FieldError[]) =>
    (body: Body, isInvalid: IsInvalid, { region_id }: { region_id?: number }) =>
      errorsOf(body, region_id === undefined ? null : memberRules(region_id), isInvalid);
  return {
    errorsOfPool: inRegion(errorsOfPool),
    errorsOfPoolUpdate: inRegion(errorsOfPoolUpdate),
    errorsOfMember: inRegion(errorsOfMember),
    errorsOfMembers: inRegion(errorsOfMembers),
  };
}

function errorsOfPool(body: ValidFields<CreatePool>, rule: MemberRule | null, isInvalid: IsInvalid): FieldError[] {
  const isGiven = (['listener_id', 'load_balancer_id', 'loadbalancer_id'] as const).some(
    (name) => body[name] || isInvalid(name),
  );
  const missing = { path: 'load_balancer_id', message: 'is required without listener_id' };
  return [...(isGiven ? [] : [missing]), ...partialPoolErrors(body, '', rule)];
}

/** Whether the secrets fit depends on those that the pool has. */
function errorsOfPoolUpdate(body: ValidFields<UpdatePool>, rule: MemberRule | null): FieldError[] {
  const { protocol, healthmonitor, session_persistence, members } = body;
  return partialPoolErrors({ protocol, healthmonitor, session_persistence, members: members ?? [] } as Pool, '', rule);
}

/** Errors that hold for members of any pool. */
function errorsOfMembers(members: ValidFields<CreateMember[]>, rule: MemberRule | null): FieldError[] {
  const anyPool = newPoolSettings({ name: '', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' });
  return partialMemberErrors(members, anyPool, '', rule);
}

/** Errors that hold for a member of any pool. */
function errorsOfMember(member: ValidFields<CreateMember>, rule: MemberRule | null): FieldError[] {
  return isWhole(member) && rule ? placementErrors(newMemberSettings(member), rule) : [];
}

/** Errors of the users alone: whether other settings fit depends on the protocol of the listener. */
export function errorsOfListenerUpdate({ user_list }: ValidFields<UpdateListener>): FieldError[] {
  return partialListenerErrors({ user_list } as Listener, '');
}

/** Whether the type fits the pool is not checked. Monitors of type HTTP may have every field. */
export function errorsOfHealthMonitor({ type, ...body }: ValidFields<PatchHealthMonitor>): FieldError[] {
  const monitor = newHealthMonitor({ ...body, type: type ?? 'HTTP' } as CreateHealthMonitor, null);
  return monitorErrors(monitor, type === 'UDP-CONNECT' ? 'UDP' : 'HTTP');
}

/** A policy fits an HTTP listener, and a rule one with TLS; whether it is such a listener is not checked. */
export function errorsOfL7Policy({ action, ...body }: ValidFields<CreateL7Policy>): FieldError[] {
  return action ? l7PolicyErrors(l7PolicySettings({ ...body, action }, null), 'HTTP') : [];
}

export function errorsOfL7Rule({ type, compare_type, value, ...body }: ValidFields<CreateL7Rule>): FieldError[] {
  if (value === undefined) return [];
  const settings = { ...body, type: type ?? 'PATH', compare_type: compare_type ?? 'EQUAL_TO', value } as const;
  const errors = l7RuleErrors(newL7RuleSettings(settings), 'TERMINATED_HTTPS');
  return type && compare_type ? errors : errors.filter(({ path }) => path === 'value');
}

/** The rule may have the key that the body omits. */
export function errorsOfL7RuleUpdate(body: ValidFields<UpdateL7Rule>): FieldError[] {
  return errorsOfL7Rule(body).filter(({ path }) => path !== 'key' || body.key !== undefined);
}

/** Without a protocol only the users are checked. */
function partialListenerErrors({ protocol, ...body }: Listener, path: string): FieldError[] {
  if (!protocol) return partialListenerErrors({ protocol: 'HTTP', user_list: body.user_list } as Listener, path);
  const users = (body.user_list ?? []) as NestedListener['user_list'];
  const areWhole = users!.every((user) => user.username !== undefined && user.encrypted_password !== undefined);
  const settings = {
    ...body,
    protocol,
    name: '',
    protocol_port: body.protocol_port ?? 1,
    sni_secret_id: body.secret_id ? body.sni_secret_id : [],
    user_list: areWhole ? users! : [],
  };
  return listenerErrors(newListenerSettings(settings as NestedListener), path);
}

/** Without a protocol the rules are applied that pools of all protocols have in common. */
function partialPoolErrors(
  body: Pool,
  path: string,
  rule: MemberRule | null,
  listener?: Listener['protocol'],
): FieldError[] {
  const { protocol, healthmonitor, session_persistence: persistence, members = [] } = body;
  const isTimeoutKnown = protocol || persistence?.type !== 'SOURCE_IP';
  const settings = newPoolSettings({
    ...(protocol ? body : { protocol: 'HTTP' }),
    crl_secret_id: protocol && body.ca_secret_id ? body.crl_secret_id : null,
    healthmonitor: protocol && healthmonitor?.type ? healthmonitor : null,
    session_persistence: persistence?.type
      ? {
          ...persistence,
          ...(!isTimeoutKnown && { persistence_timeout: null }),
          // Whether a netmask is valid depends on the address of the load balancer.
          persistence_granularity: null,
        }
      : null,
  } as NestedPool);
  return [
    ...poolErrors(settings, protocol && listener ? [listener] : [], '', path),
    ...(healthmonitor && !settings.healthMonitor
      ? prefixed(`${path}healthmonitor.`, errorsOfHealthMonitor(healthmonitor))
      : []),
    ...partialMemberErrors(members, settings, `${path}members.`, rule),
  ];
}

/** Of the members that have an address and a port. `rule`: where members may be; null if the region is unknown. */
function partialMemberErrors(
  members: ValidFields<CreateMember[]>,
  pool: PoolSettings,
  prefix: string,
  rule: MemberRule | null,
): FieldError[] {
  // Others keep their place, which messages name.
  const filled = members.map((member, i) => (isWhole(member) ? member : { address: '0.0.0.0', protocol_port: i + 1 }));
  const errors = memberListErrors(filled.map(newMemberSettings), pool, '', rule);
  return prefixed(
    prefix,
    errors.filter(({ path }) => isWhole(members[parseInt(path)]!)),
  );
}

function isWhole(member: ValidFields<CreateMember>): member is CreateMember {
  return member.address !== undefined && member.protocol_port !== undefined;
}
