/**
 * Logs in to a registry as `docker login` does: asks `/v2/`, and answers the challenge with the credentials, or takes them
 * to the token server that the challenge names and asks again with the token.
 *
 * The password goes to nobody but the registry and the token server that it names, over TLS (plain HTTP only inside the
 * networks that the operator named), and into no message: what a registry says is never repeated.
 */
import type { Credentials, RegistryAddress, Verdict, VerifyLogin } from '../registry-login.ts';
import { challengeOf } from './challenge.ts';
import { get, NoAnswer, reachable } from './connection.ts';
import type { Answer, Reach, Reachable } from './connection.ts';

const patienceMs = 10_000;

export function createVerifyLogin(reach: Reach): VerifyLogin {
  return async (registry, credentials) => {
    const timeout = AbortSignal.timeout(patienceMs);
    try {
      return await logIn(registry, credentials, reach, timeout);
    } catch (error) {
      if (timeout.aborted) return unreachable(registry, `no answer within ${patienceMs / 1000} s`);
      if (error instanceof NoAnswer) return { outcome: error.outcome, message: error.message };
      return unreachable(registry, reasonOf(error));
    }
  };
}

function unreachable({ authority }: RegistryAddress, reason: string): Verdict {
  return { outcome: 'unreachable', message: `${authority} cannot be reached: ${reason}` };
}

/** Of the connection or of TLS; nobody has seen the password where one of these happens. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (speaksTls(error)) return `its certificate is not to be trusted (${code})`;
  return (code?.startsWith('E') ? code : (message ?? code ?? 'the connection failed')).slice(0, 200);
}

async function logIn(
  { authority }: RegistryAddress,
  credentials: Credentials,
  reach: Reach,
  signal: AbortSignal,
): Promise<Verdict> {
  const { url, host, answer } = await firstAnswer(authority, reach, signal);
  if (answer.status === 200) {
    return { outcome: 'not_asked', message: `${authority} is open to everybody: it asks for no login` };
  }
  if (answer.status !== 401) throw noRegistry(authority, answer);
  const challenge = challengeOf(answer.headers['www-authenticate']);
  if (!challenge) throw new NoAnswer('no_registry', `${authority} asks for a login of a kind that registries do not`);
  const authorization =
    challenge.scheme === 'basic'
      ? basic(credentials)
      : await tokenOf(challenge.parameters, authority, credentials, reach, signal);
  if (authorization === null) return refused(authority);
  const { status } = await get(url, host, authorization, signal);
  if (status === 200) return { outcome: 'accepted', message: `${authority} accepts the login and password` };
  if (status === 401 || status === 403) return refused(authority);
  if (isTrouble(status)) throw noRegistry(authority, { status });
  throw new NoAnswer('no_registry', `${authority} answered the login with ${status}`);
}

function refused(authority: string): Verdict {
  return { outcome: 'refused', message: `${authority} refuses the login or password` };
}

/** Of an answer that is no registry's: one that is in trouble may be one all the same. */
function noRegistry(authority: string, { status }: Pick<Answer, 'status'>): NoAnswer {
  if (isTrouble(status)) return new NoAnswer('unreachable', `${authority} answered ${status}; try again later`);
  const what = status >= 300 && status < 400 ? `${status} (redirects are not followed)` : String(status);
  return new NoAnswer('no_registry', `${authority} is not a registry: /v2/ answered ${what}`);
}

/** What `/v2/` answers without credentials. Inside the operator's networks, over HTTP where TLS is not spoken. */
async function firstAnswer(authority: string, reach: Reach, signal: AbortSignal) {
  const secure = new URL(`https://${authority}/v2/`);
  const host = await reachable(secure, reach, signal);
  try {
    return { url: secure, host, answer: await get(secure, host, null, signal) };
  } catch (error) {
    if (!host.isInside || signal.aborted || speaksTls(error)) throw error;
    const plain = new URL(`http://${authority}/v2/`);
    return { url: plain, host, answer: await get(plain, host, null, signal) };
  }
}

/** It showed a certificate, only none that is to be trusted. */
function speaksTls(error: unknown): boolean {
  return /CERT|SIGNED|UNABLE_TO/.test((error as { code?: string }).code ?? '');
}

/** The header with a token for these credentials; null when the token server refuses them. */
async function tokenOf(
  { realm = '', service }: Record<string, string>,
  authority: string,
  credentials: Credentials,
  reach: Reach,
  signal: AbortSignal,
): Promise<string | null> {
  const url = URL.canParse(realm) ? new URL(realm) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new NoAnswer('no_registry', `${authority} names no token server that can be asked`);
  }
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('account', credentials.login);
  url.searchParams.set('client_id', 'cloudyard');
  const host: Reachable = await reachable(url, reach, signal);
  if (url.protocol === 'http:' && !host.isInside) {
    throw new NoAnswer('not_allowed', `${authority} wants the password sent to ${url.host} without encryption`);
  }
  const answer = await get(url, host, basic(credentials), signal);
  if (answer.status === 401 || answer.status === 403) return null;
  if (isTrouble(answer.status)) throw noRegistry(`the token server ${url.host}`, answer);
  const token = answer.status === 200 ? tokenIn(answer.text) : null;
  if (!token)
    throw new NoAnswer('no_registry', `the token server ${url.host} answered ${answer.status} without a token`);
  return `Bearer ${token}`;
}

function isTrouble(status: number): boolean {
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
