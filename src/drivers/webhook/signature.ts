import { createHmac } from 'node:crypto';

/** What a receiver computes, too: hex HMAC-SHA256 of the time, a dot and the body as it came, under the secret. */
export function signatureOf(secret: string, timestamp: string, body: string): string {
  return `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;
}
