/**
 * Sends webhooks: one signed POST a message, to an allowed address (allowed-url.ts). Redirects are not followed, because
 * they could lead to an unchecked address. Every response except 2xx is a failure.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { refuseAborted } from '../command.ts';
import { readBeginning, sendRequest } from '../customer-request.ts';
import { presentable, reasonOf, type Receipt, type WebhookCall, type WebhookDriver } from '../delivery.ts';
import { DriverError } from '../driver.ts';
import { withoutSecrets } from './redaction.ts';
import { hostOf, refusalOfAddress } from '../public-address.ts';
import { lookupOf, refused } from './allowed-url.ts';

const timeoutMs = 10_000;
/** Limit of the response body that is read. */
const responseBytes = 2048;
/** The receiver refuses all further messages: the only permanent failure. */
const gone = 410;

/** `allowPrivate`: also calls loopback, private and link-local addresses. `now`: the clock of signatures. */
export function createWebhookDriver({ allowPrivate, now }: { allowPrivate: boolean; now: () => Date }): WebhookDriver {
  const where = allowPrivate ? 'any address' : 'addresses of the public internet only';
  return {
    name: 'webhook',
    real: true,
    status: () => ({ driver: 'webhook', real: true, healthy: true, detail: `webhooks are sent to ${where}` }),
    async send(call, signal) {
      refuseAborted(signal);
      const url = new URL(call.url);
      if (!allowPrivate && isIP(hostOf(url))) {
        const refusal = refusalOfAddress(hostOf(url));
        if (refusal) throw refused(refusal);
      }
      const timestamp = String(Math.floor(now().getTime() / 1000));
      return receiptOf(await post(url, headersOf(call, timestamp), call.body, allowPrivate, signal), call);
    },
  };
}

function headersOf(call: WebhookCall, timestamp: string): Record<string, string | number> {
  return {
    ...call.headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(call.body),
    'user-agent': 'Cloudyard',
    'cloudyard-id': call.id,
    'cloudyard-timestamp': timestamp,
    'cloudyard-signature': signatureOf(call.secret, timestamp, call.body),
  };
}

/** Hex HMAC-SHA256, with the secret, of the timestamp, a dot and the body. Receivers compute the same. */
function signatureOf(secret: string, timestamp: string, body: string): string {
  return `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;
}

interface Reply {
  status: number;
  /** The header `Retry-After`. */
  retryAfter: string;
  text: string;
}

async function post(
  url: URL,
  headers: Record<string, string | number>,
  body: string,
  allowPrivate: boolean,
  signal: AbortSignal,
): Promise<Reply> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await sendRequest(url, {
      ...{ server: 'the receiver', method: 'POST', headers, body },
      signal: AbortSignal.any([signal, timeout]),
      lookup: lookupOf(allowPrivate),
    });
    return await replyOf(response);
  } catch (error) {
    throw timeout.aborted ? unreachable(`no answer within ${timeoutMs / 1000} s`, error) : asDriverError(error);
  }
}

/** The status decides: an error of the connection, or the end of its time, only ends the body. */
async function replyOf(response: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = [];
  await readBeginning(response, responseBytes, chunks).catch(() => undefined);
  const text = Buffer.concat(chunks).subarray(0, responseBytes).toString();
  return { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] ?? '', text };
}

/** @throws DriverError unless the status is 2xx */
function receiptOf({ status, retryAfter, text }: Reply, call: WebhookCall): Receipt {
  const redirect = status >= 300 && status < 400 ? ' (redirects are not followed)' : '';
  const whole = presentable(`answered ${status}${redirect}${text.trim() === '' ? '' : `: ${text}`}`);
  const answer = presentable(withoutSecrets(whole, call));
  if (status >= 200 && status < 300) return { answer };
  const minRetrySeconds = secondsOf(retryAfter);
  throw new DriverError(answer, { customerMessage: answer, retryable: status !== gone, minRetrySeconds });
}

/** Of `Retry-After`: a number, or a date. 0 for anything else. */
function secondsOf(retryAfter: string): number {
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  return Math.max(0, (Date.parse(retryAfter) - Date.now()) / 1000) || 0;
}

function asDriverError(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  return unreachable(reasonOf(error as Error), error);
}

function unreachable(message: string, cause: unknown): DriverError {
  return new DriverError(message, { customerMessage: message, retryable: true, cause });
}
