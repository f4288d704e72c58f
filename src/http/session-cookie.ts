/**
 * The cookie of a session, and the protection against requests that another site makes the browser send.
 *
 * Invariant: a request by cookie comes from a page of this server, and one that changes something also contains the CSRF
 * token, which only such a page can read. The CSRF token is a hash of the secret, so no server has to store it.
 */
import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { ClientError } from '../errors/catalogue.ts';
import { equalInConstantTime } from '../platform/crypto.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The URL that browsers use, if a proxy changes the header `Host`. */
    publicUrl: string | undefined;
  }
}

const name = 'cloudyard_session';
const header = 'x-csrf-token';

/** The value of the cookie; null without one. */
export const sessionOf = (request: FastifyRequest): string | null => cookieOf(request, name);

/** `Set-Cookie` for a new session. The browser keeps it until it ends; the server decides how long the session lasts. */
export const sessionCookie = (request: FastifyRequest, value: string): string => `${name}=${value}${flagsOf(request)}`;

/** `Set-Cookie` that makes the browser forget the session. */
export const removedCookie = (request: FastifyRequest): string => `${name}=${flagsOf(request)}; Max-Age=0`;

const signInName = 'cloudyard_sign_in';
const signInPath = '/cloudyard/v1/sign_in/oidc';

/** What a browser brings back from an OpenID Connect provider; null without it. */
export const signInOf = (request: FastifyRequest): string | null => cookieOf(request, signInName);

/** `Set-Cookie` for it. `Lax`, because the page of another site sends the browser back. */
export const signInCookie = ({ protocol }: FastifyRequest, value: string, seconds: number): string =>
  `${signInName}=${value}; HttpOnly; SameSite=Lax; Path=${signInPath}; Max-Age=${seconds}` +
  (protocol === 'https' ? '; Secure' : '');

export const removedSignInCookie = (request: FastifyRequest): string => signInCookie(request, '', 0);

function cookieOf({ headers: { cookie = '' } }: FastifyRequest, cookieName: string): string | null {
  return new RegExp(`(?:^|; *)${cookieName}=([^;\\s]+)`).exec(cookie)?.[1] ?? null;
}

function flagsOf({ protocol }: FastifyRequest): string {
  return `; HttpOnly; SameSite=Strict; Path=/${protocol === 'https' ? '; Secure' : ''}`;
}

/** The CSRF token that belongs to the value of a session cookie. */
export function csrfTokenOf(cookie: string): string {
  return hash('sha256', `csrf ${cookie}`, 'base64url');
}

/**
 * Checks a request by cookie. Browsers send `Sec-Fetch-Site` to HTTPS and to localhost, and `Origin` in all requests that
 * change something.
 * @throws ClientError 403 if a page of another site sent the request
 */
export function requireSameOrigin(request: FastifyRequest): void {
  const { origin, 'sec-fetch-site': site } = request.headers;
  const isOwn = site === undefined ? origin === undefined || isOwnOrigin(request, origin) : isOwnSite(site);
  if (!isOwn) throw new ClientError('Forbidden', 'a page of another site sent this request');
}

/** `none`: a person opened the URL. */
function isOwnSite(site: unknown): boolean {
  return site === 'same-origin' || site === 'none';
}

function isOwnOrigin({ host, server: { publicUrl } }: FastifyRequest, origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const own = new URL(origin);
  return own.host === host.toLowerCase() || (publicUrl !== undefined && own.origin === new URL(publicUrl).origin);
}

/** @throws ClientError 403 for a request that may change something and does not contain the token */
export function requireCsrfToken({ method, headers }: FastifyRequest, cookie: string): void {
  if (method === 'GET' || method === 'HEAD') return;
  const given = headers[header];
  if (typeof given === 'string' && equalInConstantTime(Buffer.from(given), Buffer.from(csrfTokenOf(cookie)))) return;
  throw new ClientError(
    'Forbidden',
    'requests with the session cookie need the header `X-CSRF-Token` with the csrf_token of GET /cloudyard/v1/session',
  );
}
