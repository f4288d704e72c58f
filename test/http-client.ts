/** A client that sends requests to a server over HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface HttpAnswer {
  status: number;
  body: any;
  headers: Headers;
}

interface HttpOptions {
  /** null: no Authorization header. */
  token?: string | null;
  headers?: Record<string, string>;
}

export interface HttpClient {
  url: string;
  request(method: string, path: string, body?: unknown, options?: HttpOptions): Promise<HttpAnswer>;
  get(path: string, options?: HttpOptions): Promise<HttpAnswer>;
  post(path: string, body?: unknown, options?: HttpOptions): Promise<HttpAnswer>;
  patch(path: string, body?: unknown, options?: HttpOptions): Promise<HttpAnswer>;
  delete(path: string, options?: HttpOptions): Promise<HttpAnswer>;
  /** Retries after 5xx and broken connections with one `Idempotency-Key`, until the request is acknowledged. */
  insist(method: string, path: string, body?: unknown): Promise<HttpAnswer>;
  /** Waits for the only task of a response and returns it. Retries like `insist`. */
  ended(answer: HttpAnswer, seconds?: number): Promise<any>;
}

export function httpClient(url: string, defaultToken: string): HttpClient {
  const request: HttpClient['request'] = async (method, path, body, options = {}) => {
    const token = options.token === undefined ? defaultToken : options.token;
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(token !== null && { authorization: `apikey ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
    return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
  };

  const insist: HttpClient['insist'] = async (method, path, body) => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const deadline = performance.now() + 60_000;
    for (;;) {
      const answer = await request(method, path, body, { headers }).catch((error: unknown) => error as Error);
      if (!(answer instanceof Error) && answer.status < 500) return answer;
      if (performance.now() > deadline) {
        const last = answer instanceof Error ? String(answer.cause) : `${answer.status} ${JSON.stringify(answer.body)}`;
        throw new Error(`${method} ${path} was not acknowledged within 60 s: ${last}`);
      }
      await sleep(50);
    }
  };

  return {
    url,
    request,
    get: (path, options) => request('GET', path, undefined, options),
    post: (path, body, options) => request('POST', path, body, options),
    patch: (path, body, options) => request('PATCH', path, body, options),
    delete: (path, options) => request('DELETE', path, undefined, options),
    insist,
    async ended(answer, seconds = 60) {
      if (answer.status !== 200 || answer.body.tasks?.length !== 1) {
        throw new Error(`no task in ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      const deadline = performance.now() + seconds * 1000;
      for (;;) {
        const { body } = await insist('GET', `/cloud/v1/tasks/${answer.body.tasks[0]}?wait=20`);
        if (body.finished_on) return body;
        if (performance.now() > deadline)
          throw new Error(`the task did not end within ${seconds} s: ${JSON.stringify(body)}`);
      }
    },
  };
}
