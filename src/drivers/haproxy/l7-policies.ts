/**
 * Pure: L7 policies as lines of a frontend, after those of authentication.ts. The condition of an action is an anonymous ACL
 * for each rule of its policy: HAProxy looks named ones up in a list, which takes 40 of 80 ms with 2,000 rules (measured).
 * Octavia evaluates rejections, then redirects, then pools, each by position; its HAProxy has this order, whatever the order
 * of the lines, and here the lines have it.
 *
 * Invariant: the policies of a listener take at most milliseconds of the thread that carries the traffic of all tenants,
 * whatever a client sends (decision 0039):
 *
 * - A pattern is matched once, from the start of the text, within a limit of steps. The limit of PCRE2 counts for each
 *   start of a search, and a step can scan the whole text, so `(?:…)` is searched by the pattern itself, and texts of
 *   `MAX_REGEX_TEXT` bytes or more do not match. Without this, one 14 KB header and `a{1,200}a{1,200}[bc]` take 180 ms, and
 *   twenty such rules make HAProxy's watchdog end the worker (measured).
 * - A rule compares each value of a header. 500 rules and a header of 6,000 values take 1.8 s (measured), so a request with
 *   more values than here is answered with 431.
 */
import type { DesiredL7Policy, DesiredL7Rule, L7Action, L7CompareType } from '../load-balancer.ts';
import * as quote from './quote.ts';

const MAX_REGEX_TEXT = 512;
const MAX_REGEX_STEPS = 1_000;
const MAX_HEADER_VALUES = 64;
/** Lines of a header that a pattern is matched with, and cookies of one name. */
const MAX_REPEATED = 8;
/** HAProxy reads up to 64 words of a line; a rule has up to 9. */
const RULES_PER_LINE = 5;

const order: L7Action[][] = [['REJECT'], ['REDIRECT_TO_URL', 'REDIRECT_PREFIX'], ['REDIRECT_TO_POOL']];

/** `backends` are the names of the enabled pools by id. A redirect to a disabled pool is omitted, as in Octavia. */
export function l7Lines(policies: DesiredL7Policy[], backends: Map<string, string>): string[] {
  const served = order
    .flatMap((actions) => policies.filter(({ action }) => actions.includes(action)))
    .filter(({ rules, redirectPoolId: pool }) => rules.length > 0 && (pool === null || backends.has(pool)));
  if (served.length === 0) return [];
  const lines = [
    ...guards(served.flatMap(({ rules }) => rules)),
    ...served.flatMap((policy, n) => policyLines(policy, n, backends)),
  ];
  const pools = served.some(({ action }) => action === 'REDIRECT_TO_POOL');
  return pools ? [...lines, 'use_backend %[var(txn.pool)] if { var(txn.pool) -m found }'] : lines;
}

function policyLines(policy: DesiredL7Policy, n: number, backends: Map<string, string>): string[] {
  const conditions = policy.rules.map((rule) => `${rule.invert ? '!' : ''}{ ${acl(rule)} }`);
  const lines: string[] = [];
  let matched = '';
  while (conditions.length > RULES_PER_LINE) {
    const some = conditions.splice(0, RULES_PER_LINE).join(' ');
    const step = `p${n}.${lines.length}`;
    lines.push(`http-request set-var(txn.rules) str(${step}) if ${matched}${some}`);
    matched = `{ var(txn.rules) -m str ${step} } `;
  }
  return [...lines, `http-request ${actionOf(policy, backends)}${matched}${conditions.join(' ')}`];
}

function actionOf(policy: DesiredL7Policy, backends: Map<string, string>): string {
  if (policy.action === 'REJECT') return 'deny deny_status 403 if ';
  if (policy.action === 'REDIRECT_TO_POOL') {
    return `set-var(txn.pool) str(${backends.get(policy.redirectPoolId ?? '')}) if !{ var(txn.pool) -m found } `;
  }
  const code = quote.whole('redirect code', policy.redirectHttpCode ?? 302, 301, 308);
  if (policy.action === 'REDIRECT_TO_URL') {
    return `redirect location ${quote.literalFormat('redirect URL', policy.redirectUrl ?? '')} code ${code} if `;
  }
  // A request path begins with a slash.
  const prefix = (policy.redirectPrefix ?? '').replace(/\/$/, '');
  return `redirect prefix ${quote.literalFormat('redirect prefix', prefix)} code ${code} if `;
}

const methods: Record<L7CompareType, string> = {
  CONTAINS: 'sub',
  ENDS_WITH: 'end',
  EQUAL_TO: 'str',
  REGEX: 'reg',
  STARTS_WITH: 'beg',
};

/** HAProxy ends an anonymous ACL at this word, within quotes too, so these patterns compare values with it. */
const END_OF_ACL = '}';
const endOfAclPatterns: Record<Exclude<L7CompareType, 'REGEX'>, string> = {
  CONTAINS: '[}]',
  ENDS_WITH: '[}]\\z',
  EQUAL_TO: '\\A[}]\\z',
  STARTS_WITH: '\\A[}]',
};

/** The method and the pattern of a rule. */
function comparison({ compareType, value }: DesiredL7Rule): string {
  const as = (method: string, text: string) => `-m ${method} -- ${quote.word('rule value', text)}`;
  if (compareType === 'REGEX') return as(methods.REGEX, boundedRegex(value));
  return value === END_OF_ACL ? as(methods.REGEX, endOfAclPatterns[compareType]) : as(methods[compareType], value);
}

/** The sample, the method and the pattern of a rule. */
function acl(rule: DesiredL7Rule): string {
  const { type, compareType, value } = rule;
  const isRegex = compareType === 'REGEX';
  const key = () => quote.l7Key(rule.key ?? '');
  const compared = (sample: string, flags = '') => `${sample} ${flags}${comparison(rule)}`;
  switch (type) {
    case 'HOST_NAME':
      return compared('req.hdr(host),host_only', '-i ');
    case 'PATH':
      return compared('path');
    case 'FILE_TYPE':
      return isRegex
        ? `path,field(-1,.) -m reg -- ${quote.word('rule value', boundedRegex(value, NOT_A_PATH))}`
        : `path -m end -- ${quote.word('rule value', `.${value.replace(/^\./, '')}`)}`;
    case 'HEADER':
      return compared(`'${comparesLines(rule) ? 'req.fhdr' : 'req.hdr'}(${key()})'`);
    case 'COOKIE':
      return compared(`'req.cook(${key()})'`);
    case 'SSL_CONN_HAS_CERT':
      return 'ssl_c_used';
    case 'SSL_VERIFY_RESULT':
      return `ssl_c_verify eq ${quote.whole('verification result', Number(value), 0, 999_999_999)}`;
    case 'SSL_DN_FIELD':
      return compared(`'ssl_c_s_dn(${key()})'`);
  }
}

/** Whether a HEADER rule compares whole lines. `req.hdr` splits them at commas, which no value with a comma would match. */
function comparesLines({ compareType, value }: DesiredL7Rule): boolean {
  return compareType === 'REGEX' || value.includes(',');
}

/** `field` returns a path without a dot whole. */
const NOT_A_PATH = '(?!/)';

/**
 * A search for `pattern` that takes a bounded number of steps. A pattern that compiles alone cannot leave its group.
 * `condition` is an assertion about the start of the text.
 */
export function boundedRegex(pattern: string, condition = ''): string {
  const start = `\\A${condition}(?![\\s\\S]{${MAX_REGEX_TEXT}})`;
  return `(*LIMIT_MATCH=${MAX_REGEX_STEPS})${start}[\\s\\S]*?(?:${pattern})`;
}

/** One for each header and cookie that a rule names. */
function guards(rules: DesiredL7Rule[]): string[] {
  const guarded = rules.flatMap((rule) => {
    const { type } = rule;
    const name = quote.l7Key(rule.key ?? '-');
    if (type === 'COOKIE') return limit(`req.cook_cnt(${name})`, MAX_REPEATED);
    if (type !== 'HEADER') return [];
    return comparesLines(rule)
      ? limit(`req.fhdr_cnt(${name.toLowerCase()})`, MAX_REPEATED)
      : limit(`req.hdr_cnt(${name.toLowerCase()})`, MAX_HEADER_VALUES);
  });
  return [...new Set(guarded)];
}

function limit(sample: string, max: number): string {
  return `http-request return status 431 if { '${sample}' gt ${max} }`;
}
