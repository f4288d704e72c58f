/**
 * Sends requests to registries and token servers that customers name. A name is resolved once, all its addresses are
 * checked, and only those are connected to, so a name that resolves differently later does not help an attacker. Redirects
 * are not followed, and at most 64 KiB of a response are read.
 */
import type { LookupAddress } from 'node:dns';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import { hostAndPort, isInNetworks } from '../../platform/network-address.ts';
import { readBeginning, sendRequest } from '../customer-request.ts';
import { unlessAborted } from '../ends-within.ts';
import { addressesOf } from '../name-resolution.ts';
import { hostOf, refusalOfAll } from '../public-address.ts';
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

/** A host with its addresses, which are allowed. `isInside`: it is in a network of the operator, so plain HTTP is allowed. */
interface AllowedHost {
  addresses: LookupAddress[];
  isInside: boolean;
}

/** Which hosts may be connected to. */
export interface HostRules {
  /** CIDRs that are allowed in addition to the public internet. */
  networks: readonly string[];
  /** Whether `host:port` is a registry of this Cloudyard or its token server. */
  isOwn: (authority: string) => boolean | Promise<boolean>;
}

/** @throws VerificationEnded if the name does not resolve or an address is not allowed */
export async function requireAllowed(
  url: URL,
  { networks, isOwn }: HostRules,
  signal: AbortSignal,
): Promise<AllowedHost> {
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
  { addresses }: AllowedHost,
  authorization: string | null,
  signal: AbortSignal,
): Promise<Answer> {
  const lookup: LookupFunction = (_host, options, callback) => {
    if (options.all) return callback(null, addresses);
    return callback(null, addresses[0]!.address, addresses[0]!.family);
  };
  const headers = { 'user-agent': 'Cloudyard', accept: 'application/json', ...(authorization && { authorization }) };
  const response = await sendRequest(url, { server: 'it', headers, signal, lookup });
  const chunks: Buffer[] = [];
  await readBeginning(response, responseBytes, chunks);
  return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() };
}
