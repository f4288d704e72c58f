/** Forwards a request to distribution, and its response to the client. */
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLostFolder } from './error-causes.ts';
import { areOfStorage, publicErrors, rangeErrors } from './public-errors.ts';
import { endAfterBody, Refusal } from './refusal.ts';

export interface Forwarding {
  method: string;
  url: string;
  /**
   * Called with the size of each part of the body before the part is forwarded. A returned promise delays the part.
   * @throws Refusal, by the promise, to stop the request
   */
  admit?(bytes: number): Promise<void> | null;
  /** Called once the complete body has been sent; at the start of a request without a body. */
  onSent?(): void;
  /** Called with the response before it is sent to the client. @throws Refusal to send instead */
  onAnswer?(answer: IncomingMessage): void | Promise<void>;
  /**
   * Called for a response with an error of the storage: repairs files that distribution cannot read. The request is sent again after
   * `repaired`, and after `pending` (distribution may be writing the file); a request with a body gets 503 instead. It is
   * sent again once after `sound`, because another request may have repaired the file in the meantime.
   */
  repair?(): Promise<'repaired' | 'pending' | 'sound'>;
  /**
   * Bytes of the body that are kept, so that the request can be sent again after the loss of a folder (error-causes.ts) and, instead of
   * 503, after a repair. Default: 0.
   */
  keeps?: number;
  /** Ends the request to distribution. If its reason is a Refusal, the client gets that. */
  signal?: AbortSignal;
  /** Parts of the request to omit. */
  without?: { body?: boolean; credentials?: boolean; type?: boolean };
}

export type Forward = ReturnType<typeof createForward>;

/** Hop-by-hop headers, and headers by which a client could claim another address or host. */
const dropped =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|forwarded|x-forwarded-.*|x-real-ip)$/;

/** Several parts of a body (64 KiB each), so that the next one is read while distribution processes the previous one. */
const highWaterMark = 256 * 1024;

/** Longer than distribution takes to write a file. */
const repairTries = 30;
const repairPauseMs = 100;

/**
 * Forwards to distribution at this socket. Both functions reject: `forward` with a Refusal if nothing was sent to the client
 * yet, `head` with the error of the connection.
 */
export function createForward(socketPath: string) {
  // Assigned to a variable because Node's types do not know `highWaterMark`.
  const options = { keepAlive: true, maxFreeSockets: 64, highWaterMark };
  const agent = new Agent(options);

  /** The response of distribution to HEAD for a path, with those headers of the client that are kept. */
  const head = async (
    request: IncomingMessage,
    path: string,
    isKept = (_name: string) => true,
  ): Promise<IncomingMessage> => {
    // Distribution would wait for the body of a length.
    const headers = headersOf(request.rawHeaders, (name) => name !== 'content-length' && isKept(name));
    const upstream = httpRequest({ agent, socketPath, method: 'HEAD', path, headers, setHost: false });
    const answered = once(upstream, 'response') as Promise<[IncomingMessage]>;
    // Distribution sends a body even in response to HEAD if it refuses the header `Host`: an error after the response.
    upstream.on('error', () => undefined);
    upstream.end();
    const [answer] = await answered;
    return answer.resume();
  };

  const forward = async (request: IncomingMessage, response: ServerResponse, forwarding: Forwarding): Promise<void> => {
    const attempt: Attempt = { tries: 0, kept: [], isKept: false };
    for (; await sendOnce(request, response, forwarding, attempt); attempt.tries += 1) await sleep(repairPauseMs);
  };

  /**
   * Resolves with true if the request must be sent again, because a file was repaired or may be written at the moment, or a folder was
   * lost.
   */
  const sendOnce = async (
    request: IncomingMessage,
    response: ServerResponse,
    forwarding: Forwarding,
    attempt: Attempt,
  ): Promise<boolean> => {
    const { method, url, signal, without = {} } = forwarding;
    const sends = !without.body && hasBody(request, method);
    const headers = headersOf(request.rawHeaders, (name) => {
      if (name === 'content-length') return sends;
      return !(without.credentials && name === 'authorization') && !(without.type && name === 'content-type');
    });
    const upstream = httpRequest({ agent, socketPath, method, path: url, headers, setHost: false, signal });
    const answered = once(upstream, 'response') as Promise<[IncomingMessage]>;
    const failed = answered.catch(() => undefined);
    // Distribution may respond before the end of the body and then close the connection.
    upstream.on('error', () => undefined);
    const onClose = () => response.writableFinished || upstream.destroy();
    response.once('close', onClose);
    try {
      if (attempt.isKept) upstream.end(Buffer.concat(attempt.kept));
      else if (sends) await sendBody(request, upstream, forwarding, { attempt, answered: failed });
      else {
        forwarding.onSent?.();
        upstream.end();
      }
      const [answer] = await answered;
      const isServerError = answer.statusCode! >= 500;
      // A response to HEAD has no body. That of a server error is for `onAnswer`.
      let errors = method === 'HEAD' || isServerError ? null : await errorsOf(answer, method);
      const isOfStorage = isServerError || (errors !== null && areOfStorage(errors, method));
      if (isOfStorage && (await mustRepeat(answer, forwarding, sends, attempt))) {
        answer.resume();
        return true;
      }
      await forwarding.onAnswer?.(answer);
      if (method !== 'HEAD' && isServerError) errors = await publicErrors(answer);
      await sendAnswer(answer, errors, response);
      if (!upstream.writableEnded) upstream.destroy();
      await endAfterBody(request, response);
      return false;
    } catch (error) {
      upstream.destroy();
      if (error instanceof Refusal) throw error;
      if (signal?.reason instanceof Refusal) throw signal.reason;
      throw new Refusal(503, 'UNAVAILABLE', 'the registry is restarting; try again in a moment', 1);
    } finally {
      response.off('close', onClose);
    }
  };
  return Object.assign(forward, { head });
}

/** The state of a request that may be sent several times. */
interface Attempt {
  /** How often it was sent before. */
  tries: number;
  /** The parts of its body, if `isKept`. */
  kept: Buffer[];
  /** Whether the whole body was received and is kept. */
  isKept: boolean;
}

/**
 * After an error of the storage: whether the request must be sent again. `sends`: it has a body, which is used up unless it is kept.
 * @throws Refusal
 */
async function mustRepeat(
  answer: IncomingMessage,
  { repair }: Forwarding,
  sends: boolean,
  { tries, isKept }: Attempt,
): Promise<boolean> {
  if (tries >= repairTries) return false;
  const canRepeat = !sends || isKept;
  if (canRepeat && answer.statusCode! >= 500 && (await isLostFolder(answer))) return true;
  if (!repair) return false;
  if ((await repair()) === 'sound') return !sends && tries === 0;
  if (canRepeat) return true;
  throw new Refusal(503, 'UNAVAILABLE', 'an incomplete file was found; try again in a moment', 1);
}

/** Sends the response of distribution, without ending it. `errors`: the body to send instead of its own; null: its own. */
async function sendAnswer(answer: IncomingMessage, errors: string | null, response: ServerResponse): Promise<void> {
  const kept = headersOf(answer.rawHeaders, (name) => errors === null || !/^content-(length|type)$/.test(name));
  if (errors !== null) {
    const bytes = String(Buffer.byteLength(errors));
    kept.push('content-type', 'application/json; charset=utf-8', 'content-length', bytes);
  }
  response.writeHead(answer.statusCode!, answer.statusMessage, kept);
  await pipeline(errors === null ? answer : [errors], response, { end: false });
}

const errorsOf = (answer: IncomingMessage, method: string): Promise<string | null> | string =>
  answer.statusCode === 416 && method === 'GET' ? rangeErrors(answer) : publicErrors(answer);

/** Resolves once the body has been sent, or earlier if distribution responds. @throws Refusal of `admit` */
async function sendBody(
  request: IncomingMessage,
  upstream: ClientRequest,
  { admit, onSent, keeps = 0 }: Forwarding,
  { attempt, answered }: { attempt: Attempt; answered: Promise<unknown> },
): Promise<void> {
  let admitting: Promise<void> | null = null;
  let bytes = 0;
  const resume = () => {
    if (!admitting && !upstream.writableNeedDrain) request.resume();
  };
  const send = (part: Buffer) => {
    if (upstream.destroyed) return;
    bytes += part.length;
    // A copy, because the part is freed.
    if (bytes <= keeps) attempt.kept.push(Buffer.from(part));
    else if (attempt.kept.length > 0) attempt.kept = [];
    const isSent = upstream.write(part, (error) => {
      if (!error) release(part);
    });
    if (!isSent) request.pause();
  };
  const admitLater = async (part: Buffer, admitted: Promise<void>) => {
    request.pause();
    await admitted;
    admitting = null;
    send(part);
    resume();
  };
  let onData!: (part: Buffer) => void;
  const sent = new Promise<void>((resolve, reject) => {
    // Not an iterator, which would create several promises and listeners for each part.
    onData = (part) => {
      const admitted = admit?.(part.length);
      if (admitted) (admitting = admitLater(part, admitted)).catch(reject);
      else send(part);
    };
    // `end` may be emitted while the last part still waits for admission.
    request.on('data', onData).once('end', () => resolve(admitting ?? undefined));
  });
  upstream.on('drain', resume);
  try {
    await Promise.race([sent, answered]);
  } finally {
    request.off('data', onData);
    upstream.off('drain', resume);
  }
  if (!request.readableEnded) return;
  attempt.isKept = bytes <= keeps;
  onSent?.();
  upstream.end();
}

/**
 * Frees the memory of a part at once, so that the next parts reuse it. Buffers that wait for garbage collection make V8 collect
 * the whole heap in each push of 100 MiB, and took 35 to 57 MB.
 */
function release({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

function hasBody({ headers }: IncomingMessage, method: string): boolean {
  if (!['POST', 'PUT', 'PATCH'].includes(method)) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The headers to pass on, from and in the form of `rawHeaders`: names and values alternate. */
export function headersOf(raw: string[], isKept = (_name: string) => true): string[] {
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (!dropped.test(name) && isKept(name)) kept.push(raw[i]!, raw[i + 1]!);
  }
  return kept;
}
