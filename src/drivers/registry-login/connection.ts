/**
 * Sends requests to registries and token servers that customers name. A name is resolved once, all its addresses are
 * checked, and only those are connected to, so a name that resolves differently later does not help an attacker. Redirects
 * are not followed, and at most 64 KiB of a response are read.
 */
import type { LookupAddress } from 'node:dns';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostAndPort, isInNetworks } from '../../platform/network-address.ts';
import { request as httpRequest } from '../../platform/node-http.ts';
import { unlessAborted } from '../ends-within.ts';
import { addressesOf } from '../name-resolution.ts';
import { agentFor, hostOf, refusalOfAll } from '../public-address.ts';
import type { Outcome } from '../registry-login.ts';

const responseBytes = 64 * 1024;

/** Ends a verification; the message is for the customer. */
export class VerificationEnded extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome, message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/** A host whose addresses are allowed. `isInside`: it is in a network of the operator, so plain HTTP is allowed. */
export interface Reachable {
  addresses: LookupAddress[];
  isInside: boolean;
}

export interface Reach {
  /** CIDRs that are allowed in addition to the public internet. */
  networks: readonly string[];
  /** Whether `host:port` is a registry of this Cloudyard or its token server. */
  isOwn: (authority: string) => boolean | Promise<boolean>;
}

/** @throws VerificationEnded if the name does not resolve or an address is not allowed */
export async function reachable(url: URL, { networks, isOwn }: Reach, signal: AbortSignal): Promise<Reachable> {
  const host = hostOf(url);
  const addresses = isIP(host) ? [{ address: host, family: isIP(host) }] : await resolve(host, signal);
  if (await isOwn(hostAndPort(url))) return { addresses, isInside: true };
  const isInside = addresses.every(({ address }) => isInNetworks(address, networks));
  const refusal = isInside ? null : refusalOfAll(host, addresses);
  if (refusal) {
    throw new VerificationEnded('not_allowed', `${refusal}; the operator can allow it with CLOUDYARD_VERIFY_NETWORKS`);
  }
  return { addresses, isInside };
}

async function resolve(host: string, signal: AbortSignal): Promise<LookupAddress[]> {
  const found = await unlessAborted(addressesOf(host), signal);
  if (found.length === 0) throw new VerificationEnded('unreachable', `the name ${host} does not resolve`);
  return found;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Sends a GET request. @throws Error of the connection */
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
      agent: agentFor(url),
      signal,
      lookup,
    })
      .on('error', reject)
      // Without an error, when the server responds with 101.
      .on('close', () => reject(new Error('it closed the connection without a response')))
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
    if (length >= responseBytes) break;
  }
  return Buffer.concat(chunks).toString();
}
