/**
 * Decides which URLs a webhook may have. Customers register webhooks and so make this machine send requests; by default only
 * addresses of the public internet are allowed. The check applies to the address of the connection: `lookupOf` resolves
 * the name for the connection itself, so a name that resolves differently later is refused, too.
 */
import { isIP, type LookupFunction } from 'node:net';
import { within } from '../../platform/within.ts';
import { DriverError } from '../driver.ts';
import { addressesOf } from '../name-resolution.ts';
import { hostOf, refusalOfAddress, refusalOfAll } from '../public-address.ts';

/** Returns the error in the text of a URL, or null. */
export function errorOfUrl(text: string): string | null {
  // The parser accepts `http:///host` and `http:host`, too.
  if (!URL.canParse(text) || !/^https?:\/\/[^/?#\\\s]\S*$/i.test(text)) {
    return 'must be an absolute http or https URL with a host, such as https://example.com/hook';
  }
  const url = new URL(text);
  if (url.username || url.password) return 'must not have a user or password; put a secret into the path or the query';
  if (url.hash) return 'must not have a fragment (#…)';
  return null;
}

const lookupTimeoutMs = 3000;

/**
 * Returns why the URL is refused, or null. A name that does not resolve is accepted, because each delivery checks it again.
 */
export async function refusalOfUrl(text: string): Promise<string | null> {
  const host = hostOf(new URL(text));
  if (isIP(host)) return refusalOfAddress(host);
  const found = await within(lookupTimeoutMs, () => addressesOf(host)).catch(() => []);
  return refusalOfAll(host, found);
}

/** Retryable, because a name may resolve to another address later, and the operator may allow it. */
export function refused(reason: string): DriverError {
  const message = `${reason}; the operator can allow it with CLOUDYARD_WEBHOOK_ALLOW_PRIVATE=1`;
  return new DriverError(message, { customerMessage: message, retryable: true });
}

/** For `net.connect`, which connects only to the addresses that this returns. */
export function lookupOf(allowPrivate: boolean): LookupFunction {
  return (host, { all }, callback) => {
    void addressesOf(host).then((found) => {
      const [first] = found;
      if (!first) return callback(new Error(`the name ${host} does not resolve`), '', 0);
      const refusal = allowPrivate ? null : refusalOfAll(host, found);
      if (refusal) return callback(refused(refusal), '', 0);
      if (all) return callback(null, found);
      return callback(null, first.address, first.family);
    });
  };
}
