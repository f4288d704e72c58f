/**
 * Prevents the programs that carry tenants' traffic from connecting to Cloudyard's own daemons on this host: the kernel
 * (nftables) rejects connections from their accounts to those ports over loopback. Without it, an NFS rule for 127.0.0.1
 * would admit clients that connect through a load balancer. Link-local addresses (metadata services of clouds) are rejected,
 * too.
 *
 * Invariant: each data directory has one table, replaced in one transaction, so the filter is never absent. A rule matches
 * the account that opened the socket, and only packets that open a connection. Clients of these programs, and replies to
 * them, are not affected, and nothing is tracked.
 *
 * Failure modes: if `nft` is missing, or the kernel or missing privileges prevent it, `apply` records why (`gap`) and load
 * balancers keep working: the API and the driver reject such members themselves. If another program flushes the table, the
 * next `apply` restores it.
 */
import { hash } from 'node:crypto';
import { resolve } from 'node:path';
import { runChild } from '../platform/child-process.ts';
import type { OwnPort } from '../platform/own-ports.ts';
import { runsAsRoot } from './confined.ts';
import { findProgram } from './programs.ts';

/** Ports that an account must not connect to. */
export interface EgressRule {
  account: { name: string; uid: number };
  ports: readonly OwnPort[];
}

export interface EgressGap {
  detail: string;
  remedy: string;
}

/** Checks whether this host can enforce the filter, without changing anything. */
export function egressGap(): Promise<EgressGap | null> {
  return failureOf(findProgram('nft'), ['--check', renderEgressFilter('cloudyard_check', [])]);
}

/** The name of the nftables table of a data directory, in the family `inet`. */
export function egressTable(dataDir: string): string {
  return `cloudyard_${hash('sha256', resolve(dataDir)).slice(0, 16)}`;
}

/** Changes nothing before `apply`. `nft`: the program; null: not installed, which `gap` reports. */
export function createEgressFilter(dataDir: string, nft = findProgram('nft')) {
  const table = egressTable(dataDir);
  let gap: EgressGap | null = null;
  return {
    /** Why the kernel does not enforce the rules, and the command that fixes it; null if it does. */
    gap: () => gap,
    /** Replaces the rules. Never rejects. */
    async apply(rules: EgressRule[]): Promise<void> {
      gap = await failureOf(nft, [renderEgressFilter(table, rules)]);
    },
    /** Removes the table. Never rejects. */
    async remove(): Promise<void> {
      if (nft) await runChild(nft, [`add table inet ${table}; delete table inet ${table}`]).catch(() => undefined);
    },
  };
}

export type EgressFilter = ReturnType<typeof createEgressFilter>;

const notEnforced = "the kernel does not block load balancers from Cloudyard's own ports";

async function failureOf(nft: string | null, args: string[]): Promise<EgressGap | null> {
  if (!runsAsRoot()) {
    return { detail: `${notEnforced}, because Cloudyard does not run as root`, remedy: 'sudo npm start' };
  }
  if (!nft) {
    return { detail: `${notEnforced}, because nft is not installed`, remedy: 'apt-get install nftables && npm start' };
  }
  try {
    await runChild(nft, args, { timeout: 20_000 });
    return null;
  } catch (err) {
    const { stderr = '', message } = err as Error & { stderr?: string };
    const [why = ''] = (stderr.trim() || message).split('\n');
    return { detail: `${notEnforced} (${why}); the worker needs CAP_NET_ADMIN`, remedy: 'sudo modprobe nf_tables' };
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

/** Connections to any address of this host use the loopback interface. */
function refusedPorts(ports: readonly OwnPort[]): string {
  const numbers = [...new Set(ports.map(({ port }) => port))].filter((port) => port > 0).sort((a, b) => a - b);
  if (numbers.length === 0) return '';
  return `    oifname "lo" tcp dport { ${numbers.join(', ')} } reject with tcp reset
    oifname "lo" udp dport { ${numbers.join(', ')} } reject
`;
}
