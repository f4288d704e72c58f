/**
 * HTTP basic authentication of listeners. crypt(3) runs in the thread that carries the traffic of all tenants.
 *
 * Invariant: the password checks of one tenant leave time for the traffic and the checks of other tenants.
 *
 * - The cost of a hash is bounded (`load-balancer-rules.ts`), and so is the length of a password, which adds to it.
 * - Verified credentials are cached by digest, so a client normally costs one check an hour. The digest covers the listener
 *   and its users, so a changed password is a cache miss; the peer section keeps the cache over a reload.
 * - Other checks are counted by source, tenant and process (the counters of limits.ts) and rejected with 429 when
 *   `checks of the tenant + all checks > CHECKS_A_SECOND`. Unknown names need no check.
 */
import { hash } from 'node:crypto';
import type { Mode } from '../load-balancer-rules.ts';
import type { DesiredListener } from '../load-balancer.ts';
import * as quote from './quote.ts';

const VERIFIED = 'cloudyard_verified';
const MAX_CACHED = 10_000;
const CHECKS_A_SECOND = 20;
const CHECKS_OF_A_SOURCE_IN_TEN_SECONDS = 50;
const MAX_PASSWORD_LENGTH = 128;

/** A section of the global file: the cache of verified credentials. */
export const verifiedTable = `backend ${VERIFIED}
  stick-table type binary len 32 size ${MAX_CACHED} expire 1h peers cloudyard
`;

/** The section with the users of a listener, before its frontend; empty without users. */
export function userList({ id, users }: DesiredListener): string {
  if (users.length === 0) return '';
  const lines = users.map(
    (user) =>
      `  user ${quote.word('user name', user.name)} password ${quote.word('password', user.encryptedPassword)}\n`,
  );
  return `userlist ${listName(id)}\n${lines.join('')}`;
}

/** Lines of a frontend, after those of limits.ts. */
export function authenticationRules({ id, users }: DesiredListener): string[] {
  if (users.length === 0) return [];
  const rule = (text: string) => `http-request ${text}`;
  const names = users.map(({ name }) => quote.word('user name', name)).join(' ');
  const digest = hash('sha256', JSON.stringify([id, users]));
  return [
    `acl known_user http_auth_user -m str -- ${names}`,
    `acl long_password http_auth_pass,length gt ${MAX_PASSWORD_LENGTH}`,
    'acl verified var(txn.verified) -m bool',
    rule('auth realm Cloudyard if !known_user || long_password'),
    rule(`set-var-fmt(txn.credentials) "${digest} %[http_auth_user]:%[http_auth_pass]"`),
    rule('set-var(txn.credentials) var(txn.credentials),sha2(256)'),
    rule(`set-var(txn.verified) var(txn.credentials),in_table(${VERIFIED})`),
    rule('set-var(txn.checks) sc_gpc0_rate(2) if !verified'),
    rule(
      `return status 429 hdr Retry-After 1 if !verified { sc_gpc0_rate(0),add(txn.checks) ge ${CHECKS_A_SECOND} } or ` +
        `!verified { sc_gpc0_rate(1) ge ${CHECKS_OF_A_SOURCE_IN_TEN_SECONDS} }`,
    ),
    ...[0, 1, 2].map((counter) => rule(`sc-inc-gpc0(${counter}) if !verified`)),
    rule(`auth realm Cloudyard if !verified !{ http_auth(${listName(id)}) }`),
    rule('set-var(txn.checked) bool(true) if !verified'),
  ];
}

/** A line of a backend: caches checked credentials after the response of a member. Tracking would need a fourth counter. */
export const cacheChecked = `stick store-request var(txn.credentials) table ${VERIFIED} if { var(txn.checked) -m bool }`;

/** Lines of a backend; none if no listener of the load balancer has users. */
export function cachingRules(mode: Mode, listeners: DesiredListener[]): string[] {
  return mode === 'http' && listeners.some(({ users }) => users.length > 0) ? [cacheChecked] : [];
}

function listName(id: string): string {
  return `users_${quote.id(id)}`;
}
