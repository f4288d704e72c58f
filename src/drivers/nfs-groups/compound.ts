/**
 * Sends NFSv4.0 compounds to a server, in one connection. Version 4.0, because such requests need no client id: a client id would
 * be recorded, and the next server's grace period would wait for it.
 *
 * Source: RFC 7530 (NFSv4.0).
 */
import { NFS4, sendCalls } from '../rpc.ts';
import { opaque, words } from '../xdr.ts';

const COMPOUND = { ...NFS4, procedure: 1 };
const AUTH_SYS = 1;
const ROOT = Buffer.concat([words(0), opaque('cloudyard'), words(0, 0, 0)]);
const credential = Buffer.concat([words(AUTH_SYS), opaque(ROOT)]);

export interface CompoundTarget {
  /** The address of the group, which this host has. */
  address: string;
  port: number;
  timeoutMs: number;
}

interface CompoundReply {
  /** The index of the compound. */
  index: number;
  /** How many operations were carried out, and how the last one ended. */
  operations: number;
  status: number;
  /** One after the other: number of the operation, status, and what the operation returns. */
  results: Buffer;
}

/**
 * Each compound is a list of encoded operations. Returns the replies that arrive within the time; others are missing, and those
 * that the server refused.
 * @throws if the server does not respond at all
 */
export async function sendCompounds(
  { address, port, timeoutMs }: CompoundTarget,
  compounds: Buffer[][],
): Promise<CompoundReply[]> {
  if (compounds.length === 0) return [];
  const calls = compounds.map((operations) => Buffer.concat([opaque(''), words(0, operations.length), ...operations]));
  const target = { host: address, port, localAddress: address };
  const replies = await sendCalls(target, COMPOUND, calls, { credential, timeoutMs });
  return replies.flatMap(({ index, results }) => (results ? [{ index, ...parseResults(results) }] : []));
}

/** Status, tag, number of results, results. */
function parseResults(results: Buffer): Omit<CompoundReply, 'index'> {
  const at = 8 + Math.ceil(results.readUInt32BE(4) / 4) * 4;
  return { operations: results.readUInt32BE(at), status: results.readUInt32BE(0), results: results.subarray(at + 4) };
}
