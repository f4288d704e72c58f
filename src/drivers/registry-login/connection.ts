/**
 * Requests to registries and their token servers, which customers name. A name is looked up once, all its addresses are
 * judged, and only those are connected to, so a name that changes its mind is of no use. Redirects are not followed, and
 * of an answer no more than 64 KiB are read.
 */
import { lookup } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { hostAndPort, isInNetworks } from '../../platform/network-address.ts';
import { refusalOfAll } from '../public-address.ts';
import type { Outcome } from '../registry-login.ts';

const answerBytes = 64 * 1024;

// Of our own: the global ones may go through a proxy, which would look names up by itself.
const agents = { 'http:': new HttpAgent({ keepAlive: false }), 'https:': new HttpsAgent({ keepAlive: false }) };

/** Thrown where asking ends; the message is for the customer. */
export class NoAnswer extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome, message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/** A host whose addresses may be connected to. `isInside`: the operator named them, so plain HTTP is good enough. */
export interface Reachable {
  addresses: LookupAddress[];
  isInside: boolean;
}

export interface Reach {
  /** CIDRs that may be connected to, beside the public internet. */
  networks: readonly string[];
  /** Whether host:port is a registry of this Cloudyard's, or its token server. */
  isOwn: (authority: string) => boolean | Promise<boolean>;
}

/** @throws NoAnswer when the name does not resolve, or leads where nobody may be sent */
export async function reachable(url: URL, { networks, isOwn }: Reach, signal: AbortSignal): Promise<Reachable> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const addresses = isIP(host) ? [{ address: host, family: isIP(host) }] : await resolve(host, signal);
  if (await isOwn(hostAndPort(url))) return { addresses, isInside: true };
  const isInside = addresses.every(({ address }) => isInNetworks(address, networks));
  const refusal = isInside
    ? null
    : refusalOfAll(
        host,
        addresses.map(({ address }) => address),
      );
  if (refusal) {
    throw new NoAnswer('not_allowed', `${refusal}; the operator may allow it with CLOUDYARD_VERIFY_NETWORKS`);
  }
  return { addresses, isInside };
}

async function resolve(host: string, signal: AbortSignal): Promise<LookupAddress[]> {
  const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const found = await Promise.race([lookup(host, { all: true }).catch(() => []), aborted]);
  if (found.length === 0) throw new NoAnswer('unreachable', `the name ${host} cannot be resolved`);
  return found;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** GET. @throws Error of the connection */
export async function get(
  url: URL,
  { addresses }: Reachable,
  authorization: string | null,
  signal: AbortSignal,
): Promise<Answer> {
  const lookup: LookupFunction = (_host, options, callback) => {
    if (options.all) return callback(null, addresses);
    return callback(null, addresses[0]!.address, addresses[0]!.family);
  };
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    send(url, {
      headers: { 'user-agent': 'Cloudyard', accept: 'application/json', ...(authorization && { authorization }) },
      agent: agents[url.protocol as keyof typeof agents],
      signal,
      lookup,
    })
      .on('error', reject)
      .on('response', resolve)
      .end();
  });
  return { status: response.statusCode ?? 0, headers: response.headers, text: await beginningOf(response) };
}

async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= answerBytes) break;
  }
  return Buffer.concat(chunks).toString();
}
