/**
 * Requests to the server. `node:http` is loaded without `import`, which would evaluate its lazy properties: they load the
 * implementation of `fetch`, which takes 40 ms of CPU time.
 *
 * Failure modes: a response with an error status is an ApiError; a server that cannot be reached is a CommandError.
 */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { CommandError, exitCodes } from './errors.ts';
import { firstId, type Target } from './contexts.ts';
import type { Operation } from './table.ts';

interface Request {
  method: string;
  /** With the query. */
  path: string;
  body?: unknown;
  contentType?: string;
  /** Ends the request with a ConnectionError. */
  signal?: AbortSignal;
  /** Receives server-sent events as they arrive; the response is then empty. Without it they are an error: they do not end. */
  onEvents?: (text: string) => void;
}

export interface Response {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  body: any;
}

/** Longer than the longest wait that the server grants. */
export const silenceMs = 120_000;

/** The server could not be reached, or the connection broke. */
export class ConnectionError extends CommandError {}

class ApiError extends CommandError {
  readonly status: number;
  constructor({ status, body, text }: Response, hint: string) {
    const errors = (body?.errors ?? []) as { path: string; message: string }[];
    const message = body?.message ?? (text.trim().slice(0, 200) || `the server answered with status ${status}`);
    // The message of an invalid request repeats its errors, and that of an exceeded quota those that name their kind.
    const textOf = ({ path, message: text }: { path: string; message: string }) =>
      text.startsWith(path) ? text : `${path}: ${text}`;
    const others = errors.filter((error) => !String(message).includes(textOf(error)));
    const lines = others.map((error) => `\n  ${error.path}: ${error.message}`).join('');
    const trace = status >= 500 && body?.request_id ? ` (request ${body.request_id})` : '';
    super(`${message}${hint}${trace}${lines}`, status === 404 ? exitCodes.notFound : exitCodes.failed);
    this.status = status;
  }
}

export type Api = ReturnType<typeof createApi>;

/** `longestSilenceMs`: how long the server may send nothing. */
export function createApi(target: Target, longestSilenceMs = silenceMs) {
  return {
    target,
    /** @throws ApiError for a status of 400 or more, and CommandError for a redirect */
    async send(request: Request): Promise<Response> {
      const incoming = await open(target, request, longestSilenceMs);
      if (incoming.statusCode! < 300 && incoming.headers['content-type']?.startsWith('text/event-stream')) {
        return receiveEvents(incoming, request);
      }
      const response = await receive(incoming);
      if (response.status >= 300) throw refusal(target, response);
      return response;
    },
    /** Writes the body as it arrives. */
    async stream(request: Request, write: (text: string) => void): Promise<void> {
      const incoming = await open(target, request, 0);
      if (incoming.statusCode! >= 300) throw refusal(target, await receive(incoming));
      await copyText(incoming, write);
    },
  };
}

async function receiveEvents(incoming: IncomingMessage, { onEvents }: Request): Promise<Response> {
  if (!onEvents) {
    incoming.destroy();
    throw new CommandError('the response is a stream of events, which has neither pages nor an end');
  }
  await copyText(incoming, onEvents);
  return { status: incoming.statusCode!, headers: incoming.headers, text: '', body: undefined };
}

/** Chunks may end within a character, which is then written with the next one. */
async function copyText(incoming: IncomingMessage, write: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of chunksOf(incoming)) write(decoder.decode(chunk, { stream: true }));
}

function refusal(target: Target, response: Response): CommandError {
  if (response.status >= 400) return new ApiError(response, hintFor(target, response));
  // Followed, a redirect would send the token to another address.
  return new CommandError(`${target.url} redirects to ${response.headers.location}; use that URL in the context`);
}

function hintFor({ token, project }: Target, { status, body }: Response): string {
  if (status === 401 && token === undefined) return '; set CLOUDYARD_TOKEN, or a token in the context';
  // Project 1 is the default, and only tokens of the operator have it.
  const isDefault = project === firstId && status === 404 && body?.message === `project ${firstId} not found`;
  return isDefault ? '; select one of "cloudyard project list" with --project or CLOUDYARD_PROJECT' : '';
}

function open(
  target: Target,
  { method, path, body, contentType, signal }: Request,
  timeout: number,
): Promise<IncomingMessage> {
  const url = new URL(target.url + path);
  const isForm = contentType === 'application/x-www-form-urlencoded';
  const payload =
    body === undefined
      ? undefined
      : isForm
        ? new URLSearchParams(body as Record<string, string>).toString()
        : JSON.stringify(body);
  const options: RequestOptions = {
    method,
    timeout,
    signal,
    headers: {
      accept: '*/*',
      'user-agent': 'cloudyard',
      ...(target.token !== undefined && { authorization: `apikey ${target.token}` }),
      ...(payload !== undefined && {
        'content-type': contentType ?? 'application/json',
        'content-length': Buffer.byteLength(payload),
      }),
    },
  };
  const { request } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http');
  return new Promise<IncomingMessage>((resolve, reject) => {
    const fail = (error: unknown) => reject(connectionError(url, error));
    let sent;
    try {
      sent = request(url, options, resolve);
    } catch (error) {
      // A token with characters that a header cannot have.
      return reject(new CommandError((error as Error).message, exitCodes.usage, error));
    }
    sent.once('error', fail);
    sent.once('timeout', () => sent.destroy(new Error(`no response for ${timeout / 1000} s`)));
    sent.end(payload);
  });
}

/** @throws ConnectionError */
async function* chunksOf(incoming: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* incoming as AsyncIterable<Buffer>;
  } catch (error) {
    throw new ConnectionError(`the connection broke: ${(error as Error).message}`, exitCodes.failed, error);
  }
}

async function receive(incoming: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = [];
  for await (const chunk of chunksOf(incoming)) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  const isJson = incoming.headers['content-type']?.includes('json') && text !== '';
  return { status: incoming.statusCode!, headers: incoming.headers, text, body: isJson ? parsed(text) : undefined };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandError('the server sent JSON that is not valid', exitCodes.failed, error);
  }
}

const untrusted = new Set([
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
  ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT'],
]);

function connectionError(url: URL, error: unknown): ConnectionError {
  // An AggregateError for several addresses has no message of its own.
  const { message, code } = error as NodeJS.ErrnoException;
  return new ConnectionError(`cannot reach ${url.origin}: ${reasonOf(message, code)}`, exitCodes.failed, error);
}

function reasonOf(message: string, code: string | undefined): string | undefined {
  if (untrusted.has(code ?? '')) {
    return 'its certificate is not trusted; set NODE_EXTRA_CA_CERTS to the file with the certificate of its CA';
  }
  // The first bytes of an HTTP response, as a TLS record.
  if (/wrong version number|packet length too long/.test(message)) return 'it does not use TLS; try http://';
  return message || code;
}

export function withQuery(path: string, query: Record<string, unknown>): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) values.append(name, String(each));
  }
  return values.size === 0 ? path : `${path}${path.includes('?') ? '&' : '?'}${values}`;
}

const pageSize = 1000;

/** Whether the list has pages. */
export function isPaged({ query = {} }: Operation): boolean {
  return 'limit' in query;
}

/**
 * All results of a list, page by page: those from the `offset` of the path, in pages of its `limit`. A list without pages is
 * requested once.
 */
export async function listAll(api: Api, path: string, { paged = true } = {}): Promise<any[]> {
  const found: any[] = [];
  const [resource = '', given] = path.split(/\?(.*)/s);
  const query = new URLSearchParams(given);
  const start = Number(query.get('offset') ?? 0);
  if (!query.has('limit')) query.set('limit', String(pageSize));
  for (;;) {
    query.set('offset', String(start + found.length));
    const { body } = await api.send({ method: 'GET', path: paged ? `${resource}?${query}` : path });
    const results = (body?.results ?? []) as unknown[];
    found.push(...results);
    const count = typeof body?.count === 'number' ? body.count : start + found.length;
    if (!paged || results.length === 0 || start + found.length >= count) return found;
  }
}
