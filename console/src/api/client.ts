import createClient, { type Middleware } from 'openapi-fetch';
import type { paths } from './openapi.d.ts';
import { ApiError, ConnectionError, toConnectionError } from './errors.ts';
import { KEY_HEADER, keyOf } from './idempotency-keys.ts';
import { noteDelay, noteResponse } from './reachability.ts';
import { noteDate } from './server-clock.ts';

/** Signs unsafe requests of a session and turns failures into exceptions. `reportExpiry` runs when the session has ended. */
export const sessionState: { csrfToken: string | null; reportExpiry: () => void } = {
  csrfToken: null,
  reportExpiry: () => {},
};

const signing: Middleware = {
  async onRequest({ request }) {
    const isUnsafe = !['GET', 'HEAD'].includes(request.method);
    if (isUnsafe && sessionState.csrfToken !== null) request.headers.set('X-CSRF-Token', sessionState.csrfToken);
    const key = request.method === 'POST' ? keyOf(request.url, await request.clone().text()) : null;
    if (key !== null) request.headers.set(KEY_HEADER, key);
    return request;
  },
  onResponse({ request, response }) {
    note(request.method, response);
    if (response.status === 401 && !new URL(response.url).pathname.endsWith('/session')) sessionState.reportExpiry();
  },
  onError() {
    noteResponse(null);
    return new ConnectionError();
  },
};

/** Without its database the server reads nothing, and the page is out of date as well. A refused change says nothing about that. */
function note(method: string, { status, headers }: Response): void {
  if (status !== 503) noteResponse(status);
  else if (method === 'GET') noteResponse(null);
  noteDate(headers.get('Date'));
}

/** Twice the time after which the server responds with 503. */
const GIVE_UP_MS = 60_000;

/** A read without a response fails, and is repeated over another connection. The outcome of a change would be unknown. */
async function send(request: Request): Promise<Response> {
  const isRead = request.method === 'GET';
  const giveUp = new AbortController();
  const timer = setTimeout(() => isRead && giveUp.abort(), GIVE_UP_MS);
  const response = fetch(request, { signal: giveUp.signal }).finally(() => clearTimeout(timer));
  return isRead ? noteDelay(response) : response;
}

/** Every operation of openapi.json, with the types of its parameters, body and response. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });
api.use(signing);

interface Result<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

const NO_CONTENT = 204;

/**
 * The body of a successful response.
 * @throws ApiError with the server's message, or ConnectionError if the body is missing: a proxy has cut it
 */
export async function unwrap<T>(request: Promise<Result<T>>): Promise<T> {
  const { data, response } = await succeeded(request);
  if (data === undefined && response.status !== NO_CONTENT) throw toConnectionError(null);
  return data as T;
}

/** The same for operations whose successful response has no body. */
export async function succeeded<T>(request: Promise<Result<T>>): Promise<Result<T>> {
  const result = await request.catch((failure: unknown) => {
    throw toConnectionError(failure);
  });
  if (!result.response.ok) throw new ApiError(result.response.status, result.error);
  return result;
}

/** One request by method and path, for operations that are chosen at run time. The path includes its parameters. */
export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
  if (method !== 'GET' && sessionState.csrfToken !== null) headers['X-CSRF-Token'] = sessionState.csrfToken;
  const sent = body === undefined ? null : JSON.stringify(body);
  const key = method === 'POST' ? keyOf(path, sent ?? '') : null;
  if (key !== null) headers[KEY_HEADER] = key;
  const response = await send(new Request(path, { method, headers, body: sent })).catch(() => {
    noteResponse(null);
    throw new ConnectionError();
  });
  note(method, response);
  let value: unknown;
  try {
    const text = await response.text();
    value = text === '' && response.status === NO_CONTENT ? undefined : JSON.parse(text);
  } catch (failure) {
    // Proxies send errors as HTML.
    if (response.ok) throw toConnectionError(failure);
  }
  if (response.ok) return value as T;
  if (response.status === 401 && !path.endsWith('/session')) sessionState.reportExpiry();
  throw new ApiError(response.status, value);
}
