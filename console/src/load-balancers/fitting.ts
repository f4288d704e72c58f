/** Forms keep what was typed for another protocol or type. Requests have only the fields that the form shows. */
import type { Values } from '../ui/form/use-form.ts';
import { hasCertificate, hasHeaders, hasPool, hasUsers } from './listeners/protocols.ts';

/** Types of health monitors that send a request. K8S monitors work as HTTP. */
export const sendsRequests = (type: unknown) => ['HTTP', 'HTTPS', 'K8S'].includes(String(type));
/** Pools that encrypt the traffic to their members. */
export const hasTls = (protocol: unknown) => protocol === 'HTTPS';
/** Session persistence with a time and a netmask. */
export const hasPersistenceTime = (protocol: unknown, type: unknown) => protocol === 'UDP' && type === 'SOURCE_IP';
/** Types of L7 rules that name a header, a cookie or a field. */
export const hasKey = (type: unknown) => ['HEADER', 'COOKIE', 'SSL_DN_FIELD'].includes(String(type));

/** The fields of a new listener that its protocol has; the same for its pools. */
export function fittingListener({ pools, ...values }: Values): Values {
  const { protocol } = values;
  const own = without(values, [
    ...(hasCertificate(protocol) ? [] : ['secret_id', 'sni_secret_id']),
    ...(hasHeaders(protocol) ? [] : ['insert_x_forwarded']),
    ...(hasUsers(protocol) ? [] : ['user_list']),
    ...(hasPool(protocol) ? [] : ['default_pool_id']),
  ]);
  return pools === undefined ? own : { ...own, pools: (pools as readonly Values[]).map(fittingPool) };
}

/** Of a new pool, or of an edit, which has no members. */
export function fittingPool({ healthmonitor, session_persistence, members, ...values }: Values): Values {
  const { protocol } = values;
  const monitor = healthmonitor as Values | undefined;
  const persistence = session_persistence as Values | undefined;
  return {
    ...without(values, hasTls(protocol) ? [] : ['ca_secret_id', 'crl_secret_id', 'secret_id']),
    ...(members !== undefined && { members: fittingMembers(members as readonly Values[], monitor !== undefined) }),
    ...(monitor && { healthmonitor: fittingMonitor(monitor) }),
    ...(persistence && { session_persistence: fittingPersistence(persistence, protocol) }),
  };
}

function fittingMembers(members: readonly Values[], isMonitored: boolean): Values[] {
  return members.map((member) => without(member, isMonitored ? [] : ['monitor_address', 'monitor_port']));
}

function fittingMonitor(values: Values): Values {
  const request = ['http_method', 'http_version', 'url_path', 'domain_name', 'expected_codes'];
  return without(values, sendsRequests(values['type']) ? [] : request);
}

function fittingPersistence(values: Values, protocol: unknown): Values {
  const times = ['persistence_timeout', 'persistence_granularity'];
  return without(values, hasPersistenceTime(protocol, values['type']) ? [] : times);
}

export function fittingRule(values: Values): Values {
  return without(values, hasKey(values['type']) ? [] : ['key']);
}

function without(values: Values, names: readonly string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}
