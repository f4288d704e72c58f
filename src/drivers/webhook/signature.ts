import { createHmac } from 'node:crypto';

/** Hex HMAC-SHA256, with the secret, of the timestamp, a dot and the body. Receivers compute the same. */
export function signatureOf(secret: string, timestamp: string, body: string): string {
  return `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;
}
