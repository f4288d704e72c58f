/**
 * Where a webhook may go. Whoever registers one makes this machine send requests, so by default only addresses of the
 * public internet are allowed. What counts is the address that is connected to: a name is looked up for the connection
 * itself (`allowedLookup`), so a name that has changed its mind since it was looked at is refused, too.
 */
import { lookup } from 'node:dns';
import type { LookupOptions } from 'node:dns';
import { lookup as lookUp } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { DriverError } from '../driver.ts';
import { refusalOfAddress, refusalOfAll } from '../public-address.ts';

/** What is wrong with the URL of a webhook, as far as the text tells; null when nothing is. */
export function faultOfUrl(text: string): string | null {
  if (!URL.canParse(text) || /\s/.test(text)) return 'must be a URL such as https://example.com/hook';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://';
  if (url.username || url.password)
    return 'must not have a user or a password; a secret belongs into the path or the query';
  if (url.hash) return 'must not have a fragment (#…)';
  return null;
}

const patienceMs = 3000;

/**
 * Why a webhook may not go to this URL as its name resolves now; null when it may. A name that does not resolve yet is
 * no reason: each delivery looks again.
 */
export async function refusalOfTarget(text: string): Promise<string | null> {
  const host = hostOf(new URL(text));
  if (isIP(host)) return refusalOfAddress(host);
  const tooSlow = new Promise<[]>((resolve) => setTimeout(() => resolve([]), patienceMs).unref());
  const found = await Promise.race([lookUp(host, { all: true }).catch(() => []), tooSlow]);
  return refusalOfAll(
    host,
    found.map(({ address }) => address),
  );
}

/** The host to connect to: an IPv6 address without its brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

export function refused(reason: string): DriverError {
  const message = `${reason}; the operator may allow it with CLOUDYARD_WEBHOOK_ALLOW_PRIVATE=1`;
  return new DriverError(message, { customerMessage: message, retryable: true });
}

/** For `net.connect`: it connects to what this returns, and to nothing else. */
export const allowedLookup: LookupFunction = (host, options, callback) => {
  lookup(host, { ...(options as LookupOptions), all: true }, (error, found) => {
    if (error) return callback(error, '', 0);
    const refusal = refusalOfAll(
      host,
      found.map(({ address }) => address),
    );
    if (refusal) return callback(refused(refusal), '', 0);
    if (options.all) return callback(null, found);
    return callback(null, found[0]!.address, found[0]!.family);
  });
};
