/**
 * Keeps the programs that carry tenants' traffic away from Cloudyard's own daemons on this host: the kernel (nftables)
 * refuses connections that their accounts open to those ports over loopback. So an NFS rule for 127.0.0.1 does not admit a
 * client that comes through a load balancer. Link-local addresses (metadata services of clouds) are refused as well.
 *
 * Invariant: one table a data directory, replaced in one transaction, so there is no moment without it. A packet is
 * judged by the account that opened its socket and only when it opens a connection, so clients of these programs, and
 * replies to them, are not affected; nothing is tracked.
 *
 * Failure modes: where `nft` is missing, or the kernel or a lack of privileges does not let it work, `apply` reports why
 * (`gap`) and load balancers go on: the API and the driver refuse such members by themselves. A table that something else
 * flushes is there again after the next `apply`.
 */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { runChild } from '../platform/child-process.ts';
import type { OwnPort } from '../platform/own-ports.ts';
import { findProgram } from './programs.ts';

/** What an account may not connect to. */
export interface EgressRule {
  account: { name: string; uid: number };
  ports: readonly OwnPort[];
}

export interface EgressFilter {
  /** Replaces what is in force. Never rejects. */
  apply(rules: EgressRule[]): Promise<void>;
  /** Why the kernel does not enforce it, and what to do; null when it does. */
  gap(): Gap | null;
  remove(): Promise<void>;
}

interface Gap {
  detail: string;
  remedy: string;
}

/** Whether this host could enforce the filter. Changes nothing. */
export function egressGap(nft = findProgram('nft')): Promise<Gap | null> {
  return failureOf(nft, ['--check', renderEgressFilter('cloudyard_check', [])]);
}

export function egressTable(dataDir: string): string {
  return `cloudyard_${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16)}`;
}

export function createEgressFilter(dataDir: string, nft = findProgram('nft')): EgressFilter {
  const table = egressTable(dataDir);
  let gap: Gap | null = null;
  return {
    gap: () => gap,
    async apply(rules) {
      gap = await failureOf(nft, [renderEgressFilter(table, rules)]);
    },
    async remove() {
      if (nft) await runChild(nft, [`add table inet ${table}; delete table inet ${table}`]).catch(() => undefined);
    },
  };
}

const notEnforced = "the kernel does not keep load balancers from Cloudyard's own ports";

async function failureOf(nft: string | null, args: string[]): Promise<Gap | null> {
  if (process.getuid?.() !== 0) {
    return { detail: `${notEnforced}, because Cloudyard does not run as root`, remedy: 'run the worker as root' };
  }
  if (!nft) return { detail: `${notEnforced}, because nft is not installed`, remedy: 'apt-get install nftables' };
  try {
    await runChild(nft, args, { timeout: 20_000 });
    return null;
  } catch (err) {
    const { stderr = '', message } = err as Error & { stderr?: string };
    const [why = ''] = (stderr.trim() || message).split('\n');
    return { detail: `${notEnforced} (${why})`, remedy: 'give the worker CAP_NET_ADMIN and a kernel with nftables' };
  }
}

/** Pure. */
export function renderEgressFilter(table: string, rules: EgressRule[]): string {
  const chains = rules.map(
    ({ account, ports }) => `  chain ${account.name} {
${refusedPorts(ports)}    ip daddr 169.254.0.0/16 goto link_local
    ip6 daddr fe80::/10 goto link_local
  }
`,
  );
  const jumps = rules.map(({ account }) => `    meta skuid ${account.uid} goto ${account.name}\n`);
  return `add table inet ${table}
delete table inet ${table}
table inet ${table} {
  chain link_local {
    meta l4proto tcp reject with tcp reset
    udp dport >= 1024 accept
    reject
  }
${chains.join('')}  chain new_connections {
${jumps.join('')}  }
  chain output {
    type filter hook output priority filter; policy accept;
    tcp flags & (syn | ack) == syn goto new_connections
    meta l4proto { udp, icmp, ipv6-icmp } goto new_connections
  }
}
`;
}

/** By any address of this host: all of them lead over the loopback interface. */
function refusedPorts(ports: readonly OwnPort[]): string {
  const numbers = [...new Set(ports.map(({ port }) => port))].filter((port) => port > 0).sort((a, b) => a - b);
  if (numbers.length === 0) return '';
  return `    oifname "lo" tcp dport { ${numbers.join(', ')} } reject with tcp reset
    oifname "lo" udp dport { ${numbers.join(', ')} } reject
`;
}
