/**
 * Pure: which L7 policies and rules are valid. The API checks requests with these rules, and the drivers check again before
 * they touch the host.
 *
 * Rules are those of Octavia (octavia/common/validate.py and the HAProxy template), which the official API uses: FILE_TYPE
 * supports EQUAL_TO and REGEX; SSL_CONN_HAS_CERT and SSL_VERIFY_RESULT support EQUAL_TO.
 *
 * Invariant: the cost of evaluating all policies of a listener for one request is bounded (decision 0039), because
 * HAProxy evaluates them in the thread that carries the traffic of all tenants.
 */
import type { FieldError } from '../errors/catalogue.ts';
import { collector } from './load-balancer-rules.ts';
import { isFreeText, isHeaderName } from './load-balancer-text.ts';
import type {
  DesiredL7Policy,
  DesiredL7Rule,
  L7CompareType,
  L7RuleType,
  ListenerProtocol,
  PoolProtocol,
} from './load-balancer.ts';
import { nestedRepetition } from './nested-repetition.ts';

type L7PolicySettings = Omit<DesiredL7Policy, 'id' | 'rules'>;
type L7RuleSettings = Omit<DesiredL7Rule, 'id'>;

/** Per listener, and `rulesOfPolicy` per policy. */
export const l7Limits = { policies: 1_000, rulesOfPolicy: 100, rules: 2_000, regexRules: 50, containsRules: 500 };
export const redirectCodes = [301, 302, 303, 307, 308] as const;
const maxUrlLength = 255;

/** The listeners that can have L7 policies: those that read HTTP and pass it on. */
const l7Listeners: ListenerProtocol[] = ['HTTP', 'TERMINATED_HTTPS'];
const l7Pools: PoolProtocol[] = ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'];

const targetOf = {
  REDIRECT_TO_URL: { field: 'redirect_url', key: 'redirectUrl' },
  REDIRECT_PREFIX: { field: 'redirect_prefix', key: 'redirectPrefix' },
  REDIRECT_TO_POOL: { field: 'redirect_pool_id', key: 'redirectPoolId' },
} as const;

/** Violations by field of the API. `pool`: the protocol of the redirect pool; null: none. */
export function l7PolicyViolations(
  policy: L7PolicySettings,
  listener: ListenerProtocol,
  pool: PoolProtocol | null,
): FieldError[] {
  const { violations, report } = collector();
  if (!l7Listeners.includes(listener)) {
    report('listener_id', `must be an HTTP or TERMINATED_HTTPS listener, not ${listener}`);
  }
  for (const [action, { field, key }] of Object.entries(targetOf)) {
    const value = policy[key];
    if (action !== policy.action && value !== null) report(field, `is only supported for ${action}`);
    if (action === policy.action && value === null) report(field, `is required for ${action}`);
  }
  for (const { field, key } of [targetOf.REDIRECT_TO_URL, targetOf.REDIRECT_PREFIX]) {
    const url = policy[key];
    if (url !== null && !isHttpUrl(url)) {
      report(
        field,
        `must be an absolute http or https URL without user information, of at most ${maxUrlLength} visible ASCII characters`,
      );
    }
  }
  const redirects = policy.action === 'REDIRECT_TO_URL' || policy.action === 'REDIRECT_PREFIX';
  const { redirectHttpCode: code } = policy;
  if (!redirects && code !== null) {
    report('redirect_http_code', 'is only supported for REDIRECT_TO_URL and REDIRECT_PREFIX');
  }
  if (redirects && !redirectCodes.some((known) => known === code)) {
    report('redirect_http_code', `must be one of ${redirectCodes.join(', ')}`);
  }
  if (pool !== null && !l7Pools.includes(pool)) {
    report('redirect_pool_id', `must be a pool of protocol ${l7Pools.join(', ')}, not ${pool}`);
  }
  return violations;
}

/** RFC 3986, with a host and without user information. */
function isHttpUrl(text: string): boolean {
  if (text.length > maxUrlLength || !/^https?:\/\/[^/?#@]+([/?#]|$)/i.test(text)) return false;
  if (!/^(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*$/.test(text)) return false;
  return URL.canParse(text);
}

const keyed: Partial<Record<L7RuleType, { fits(key: string): boolean; message: string }>> = {
  HEADER: { fits: isHeaderName, message: 'must be the name of a header' },
  COOKIE: { fits: isHeaderName, message: 'must be the name of a cookie' },
  SSL_DN_FIELD: {
    fits: (key) => /^[A-Za-z][A-Za-z0-9-]{0,254}$/.test(key),
    message: 'must be a field of a distinguished name, such as CN',
  },
};
const comparisons: Partial<Record<L7RuleType, L7CompareType[]>> = {
  FILE_TYPE: ['EQUAL_TO', 'REGEX'],
  SSL_CONN_HAS_CERT: ['EQUAL_TO'],
  SSL_VERIFY_RESULT: ['EQUAL_TO'],
};

/** Whether rules of the type have a `key`. */
export function takesKey(type: L7RuleType): boolean {
  return type in keyed;
}

/** Violations by field of the API. */
export function l7RuleViolations(rule: L7RuleSettings, listener: ListenerProtocol): FieldError[] {
  const { type, compareType, key } = rule;
  const { violations, report } = collector();
  if (type.startsWith('SSL_') && listener !== 'TERMINATED_HTTPS') {
    report('type', `${type} requires a TERMINATED_HTTPS listener, not ${listener}`);
  }
  const known = comparisons[type];
  if (known && !known.includes(compareType)) {
    report('compare_type', `must be ${known.join(' or ')} for ${type}, not ${compareType}`);
  }
  const named = keyed[type];
  if (!named && key !== null) report('key', `is only supported for ${Object.keys(keyed).join(', ')}, not ${type}`);
  else if (named && key === null) report('key', `is required for ${type}`);
  else if (named && key !== null && !named.fits(key)) report('key', named.message);
  const message = valueViolation(rule);
  if (message) report('value', message);
  return violations;
}

function valueViolation({ type, compareType, value }: L7RuleSettings): string | null {
  if (value === '' || !isFreeText(value)) return 'must have 1 to 512 bytes in UTF-8 and no control characters';
  if (type === 'SSL_CONN_HAS_CERT' && value.toLowerCase() !== 'true') return 'must be True for SSL_CONN_HAS_CERT';
  if (type === 'SSL_VERIFY_RESULT' && !/^\d{1,9}$/.test(value)) {
    return 'must be the number of an OpenSSL verification result, such as 0 or 18';
  }
  const nested = compareType === 'REGEX' ? nestedRepetition(value) : null;
  return nested && `repeats a repetition, ${nested}: its cost can grow exponentially; remove one of the two`;
}

/** The first limit that the policies of one listener exceed. */
export function l7LimitViolation(rules: { compareType: L7CompareType }[], policies: number): string | null {
  const exceeds = (limit: number, what: string) => `a listener can have at most ${limit} ${what}`;
  if (policies > l7Limits.policies) return exceeds(l7Limits.policies, 'L7 policies');
  if (rules.length > l7Limits.rules) return exceeds(l7Limits.rules, 'L7 rules');
  for (const [compareType, limit] of [
    ['REGEX', l7Limits.regexRules],
    ['CONTAINS', l7Limits.containsRules],
  ] as const) {
    const many = rules.filter((rule) => rule.compareType === compareType).length;
    if (many > limit) return exceeds(limit, `L7 rules of compare_type ${compareType}`);
  }
  return null;
}
