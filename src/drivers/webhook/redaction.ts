/**
 * Removes the secrets of a call from its answer, because receivers return them: `invalid token s3cret`, or
 * `Cannot POST /hooks/s3cret`.
 */
import { presentable, type WebhookCall } from '../delivery.ts';

const redacted = '[redacted]';
/** Shorter texts are parts of ordinary words. */
const shortest = 4;
const shortestPartOfUrl = 8;

/** `answer`: presentable. It may be cut off, and then end with the beginning of a secret. */
export function withoutSecrets(answer: string, call: WebhookCall): string {
  const secrets = secretsOf(call);
  const text = secrets.reduce((rest, secret) => rest.replaceAll(secret, redacted), answer);
  const lengths = secrets.map((secret) => {
    for (let length = secret.length - 1; length >= shortest; length--) {
      if (text.endsWith(secret.slice(0, length))) return length;
    }
    return 0;
  });
  const cut = Math.max(...lengths, 0);
  return cut > 0 ? `${text.slice(0, -cut)}${redacted}` : text;
}

/** The longest first. */
function secretsOf({ url, secret, headers = {} }: WebhookCall): string[] {
  const all = [...partsOfUrl(new URL(url)), ...[secret, ...Object.values(headers)].flatMap(formsOf)];
  return all.filter(({ length }) => length >= shortest).sort((a, b) => b.length - a.length);
}

/** Everything behind the host may be a secret. */
function partsOfUrl({ pathname, search, searchParams }: URL): string[] {
  const raw = [...pathname.split('/'), ...search.slice(1).split(/[&=]/)];
  const parts = [...raw, ...raw.map(decoded), ...searchParams.values()];
  return [pathname + search, pathname, search, ...parts.filter(({ length }) => length >= shortestPartOfUrl)];
}

/** Unlike `decodeURIComponent`, it accepts a `%` that encodes nothing. */
function decoded(text: string): string {
  return text.replace(/(%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString());
}

/** A header value without its scheme, too. */
function formsOf(value: string): string[] {
  const [, ...words] = value.split(/ +/);
  return [value, JSON.stringify(value).slice(1, -1), presentable(value), ...words];
}
