/**
 * Logs in to a registry as `docker login` does: requests `/v2/`, and answers the challenge with the credentials, or sends
 * them to the token server that the challenge names and repeats the request with the token.
 *
 * Invariant: the password is sent only to the registry and to the token server that it names, over TLS (plain HTTP only in
 * networks of the operator). No message contains the password or text of a registry.
 */
import type { Credentials, RegistryAddress, Verdict, VerifyLogin } from '../registry-login.ts';
import { challengeOf } from './challenge.ts';
import { get, requireAllowed, VerificationEnded, type Answer, type HostRules } from './connection.ts';

const timeoutMs = 10_000;

interface Login {
  /** Of the registry. */
  authority: string;
  credentials: Credentials;
  rules: HostRules;
  signal: AbortSignal;
}

/** A verification takes at most 10 s. */
export function createVerifyLogin(rules: HostRules): VerifyLogin {
  return async (registry, credentials) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      return await logIn({ authority: registry.authority, credentials, rules, signal: timeout });
    } catch (error) {
      if (timeout.aborted) return unreachable(registry, `no response within ${timeoutMs / 1000} s`);
      if (error instanceof VerificationEnded) return { outcome: error.outcome, message: error.message };
      return unreachable(registry, reasonOf(error));
    }
  };
}

function unreachable({ authority }: RegistryAddress, reason: string): Verdict {
  return { outcome: 'unreachable', message: `${authority} cannot be reached: ${reason}` };
}

/** The reason of a connection or TLS error, which occurs before the password is sent. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (speaksTls(error)) return `its certificate is not trusted (${code})`;
  return (code?.startsWith('E') ? code : (message ?? code ?? 'the connection failed')).slice(0, 200);
}

async function logIn(login: Login): Promise<Verdict> {
  const { authority, credentials, signal } = login;
  const { url, host, answer } = await firstAnswer(login);
  if (answer.status === 200) {
    return { outcome: 'not_asked', message: `${authority} does not require a login` };
  }
  if (answer.status !== 401) throw notARegistry(authority, answer);
  const challenge = challengeOf(answer.headers['www-authenticate']);
  if (!challenge)
    throw new VerificationEnded(
      'no_registry',
      `${authority} requires an authentication scheme that registries do not use`,
    );
  const authorization = challenge.scheme === 'basic' ? basic(credentials) : await tokenOf(challenge.parameters, login);
  if (authorization === null) return refused(authority);
  const { status } = await get(url, host, authorization, signal);
  if (status === 200) return { outcome: 'accepted', message: `${authority} accepts the login and password` };
  if (status === 401 || status === 403) return refused(authority);
  if (isServerFailure(status)) throw notARegistry(authority, { status });
  throw new VerificationEnded('no_registry', `${authority} answered the login with ${status}`);
}

function refused(authority: string): Verdict {
  return { outcome: 'refused', message: `${authority} refuses the login or password` };
}

/** The error for a response that no registry would send. A server that fails may still be a registry. */
function notARegistry(authority: string, { status }: Pick<Answer, 'status'>): VerificationEnded {
  if (isServerFailure(status))
    return new VerificationEnded('unreachable', `${authority} answered ${status}; retry later`);
  const what = status >= 300 && status < 400 ? `${status} (redirects are not followed)` : String(status);
  return new VerificationEnded('no_registry', `${authority} is not a registry: /v2/ answered ${what}`);
}

/** Requests `/v2/` without credentials. In networks of the operator, falls back to HTTP if the server has no TLS. */
async function firstAnswer({ authority, rules, signal }: Login) {
  const secure = new URL(`https://${authority}/v2/`);
  const host = await requireAllowed(secure, rules, signal);
  try {
    return { url: secure, host, answer: await get(secure, host, null, signal) };
  } catch (error) {
    if (!host.isInside || signal.aborted || speaksTls(error)) throw error;
    const plain = new URL(`http://${authority}/v2/`);
    return { url: plain, host, answer: await get(plain, host, null, signal) };
  }
}

/** Whether the server presented a certificate that is not trusted. */
function speaksTls(error: unknown): boolean {
  return /CERT|SIGNED|UNABLE_TO/.test((error as { code?: string }).code ?? '');
}

/** Returns the Authorization header with a token; null: the token server refuses the credentials. */
async function tokenOf(
  { realm = '', service }: Record<string, string>,
  { authority, credentials, rules, signal }: Login,
): Promise<string | null> {
  const url = URL.canParse(realm) ? new URL(realm) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new VerificationEnded('no_registry', `${authority} does not name a usable token server`);
  }
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('account', credentials.login);
  url.searchParams.set('client_id', 'cloudyard');
  const host = await requireAllowed(url, rules, signal);
  if (url.protocol === 'http:' && !host.isInside) {
    throw new VerificationEnded(
      'not_allowed',
      `${authority} requires the password to be sent to ${url.host} without encryption`,
    );
  }
  const answer = await get(url, host, basic(credentials), signal);
  if (answer.status === 401 || answer.status === 403) return null;
  if (isServerFailure(answer.status)) throw notARegistry(`the token server ${url.host}`, answer);
  const token = answer.status === 200 ? tokenIn(answer.text) : null;
  if (!token)
    throw new VerificationEnded(
      'no_registry',
      `the token server ${url.host} answered ${answer.status} without a token`,
    );
  return `Bearer ${token}`;
}

function isServerFailure(status: number): boolean {
  return status === 429 || status >= 500;
}

function tokenIn(text: string): string | null {
  try {
    const { token, access_token } = JSON.parse(text) as { token?: unknown; access_token?: unknown };
    const found = token ?? access_token;
    return typeof found === 'string' && /^[\x21-\x7e]+$/.test(found) ? found : null;
  } catch {
    return null;
  }
}

function basic({ login, password }: Credentials): string {
  return `Basic ${Buffer.from(`${login}:${password}`).toString('base64')}`;
}
