/** The `Idempotency-Key` of the POSTs of a form: when the user sends the form again, the server does nothing twice. */

export const KEY_HEADER = 'Idempotency-Key';

/** The keys of one opened form, by request: the server refuses a key that another request had. */
export type Keys = Map<string, string>;

/** Those of the form that is being sent. */
let current: Keys | null = null;

/**
 * Sends a form, whose POSTs get keys. They are kept until it succeeds: after a failure, a request may have taken effect, and the
 * server does one that it refused, because it keeps no errors.
 */
export async function withKeys(keys: Keys, send: () => Promise<void>): Promise<void> {
  current = keys;
  try {
    await send();
    keys.clear();
  } finally {
    if (current === keys) current = null;
  }
}

/** The key of a POST; null if no form sends it. */
export function keyOf(url: string, body: string): string | null {
  if (current === null) return null;
  const request = `${url} ${body}`;
  const key = current.get(request) ?? newKey();
  current.set(request, key);
  return key;
}

/** `crypto.randomUUID` exists on HTTPS and localhost only. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('');
}
