/**
 * Keys of the POSTs that got no answer, by request. When the user sends a form again, it has the same key, so the server does
 * nothing twice.
 */
const unanswered = new Map<string, { readonly key: string; readonly sentAt: number }>();

/** After this time, the same request is not a repetition but another one. */
const REPEATED_MS = 10 * 60_000;

/** POSTs without an effect that a repetition doubles: the server need not keep their responses. */
const REPEATABLE = /\/(pricing\/\d+\/\d+\/\w+|preview_schedule|estimate_max_policy_usage|session)$/;

export const KEY_HEADER = 'Idempotency-Key';

/** The key of a POST; null if it needs none. */
export function keyOf(url: string, body: string): string | null {
  if (REPEATABLE.test(url)) return null;
  const request = `${url} ${body}`;
  const sent = unanswered.get(request);
  if (sent && Date.now() - sent.sentAt < REPEATED_MS) return sent.key;
  const key = newKey();
  unanswered.set(request, { key, sentAt: Date.now() });
  return key;
}

/** Of a response with this status. After a failure of the server, the request may have taken effect. */
export function noteAnswer(key: string | null, status: number): void {
  if (status >= 500) return;
  for (const [request, sent] of unanswered) if (sent.key === key) unanswered.delete(request);
}

/** `crypto.randomUUID` exists on HTTPS and localhost only. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('');
}
