/**
 * HTTP basic authentication of a listener, so that the password hashes of one tenant do not stall the others: crypt(3)
 * runs in the thread that carries everybody's traffic.
 *
 * - A hash may cost some milliseconds (`load-balancer-rules.ts`), and a password is short: the cost grows with its length, too.
 * - Verified credentials are remembered by digest, so an ordinary client costs one check an hour. The digest covers the
 *   listener and its users, so a change of a password forgets them; the peer takes them over a reload.
 * - All other checks are counted for the source, the tenant and the process (the counters of limits.ts), and refused with 429
 *   where `the tenant's own + all > CHECKS_A_SECOND`: others always have checks left. Names that are not in the list cost nothing.
 */
import { createHash } from 'node:crypto';
import type { Mode } from '../load-balancer-rules.ts';
import type { DesiredListener } from '../load-balancer.ts';
import * as quote from './quote.ts';

const VERIFIED = 'cloudyard_verified';
const REMEMBERED = 10_000;
const CHECKS_A_SECOND = 20;
const CHECKS_OF_A_SOURCE_IN_TEN_SECONDS = 50;
const LONGEST_PASSWORD = 128;

/** A section of the global file. */
export const verifiedTable = `backend ${VERIFIED}
  stick-table type binary len 32 size ${REMEMBERED} expire 1h peers cloudyard
`;

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
  const digest = createHash('sha256')
    .update(JSON.stringify([id, users]))
    .digest('hex');
  return [
    `acl known_user http_auth_user -m str -- ${names}`,
    `acl long_password http_auth_pass,length gt ${LONGEST_PASSWORD}`,
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

/** A line of a backend: what was checked is remembered once a member has answered. Tracking would need a fourth counter. */
export const rememberChecked = `stick store-request var(txn.credentials) table ${VERIFIED} if { var(txn.checked) -m bool }`;

export function rememberingRules(mode: Mode, listeners: DesiredListener[]): string[] {
  return mode === 'http' && listeners.some(({ users }) => users.length > 0) ? [rememberChecked] : [];
}

function listName(id: string): string {
  return `users_${quote.id(id)}`;
}
