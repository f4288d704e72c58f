/**
 * The addresses that members of pools may have. A load balancer connects on behalf of a tenant from inside the operator's
 * network, so a service that trusts the host's addresses would trust every tenant. The API checks a member before it accepts
 * it (400), and the driver checks it again before it connects, because only the worker knows its host.
 *
 * Invariant: a network of `member_networks` allows loopback, link-local addresses or addresses of the host only if it lies
 * within them: `0.0.0.0/0` allows none of them, `127.0.0.0/8` allows loopback. Addresses of load balancers, addresses that
 * no host can have and Cloudyard's own ports are never allowed. Ports at which hosts trust each other's addresses are refused
 * at every address.
 */
import { type Address, contains, type Network, parseHost, parseNetwork } from './network-address.ts';
import type { OwnPort } from './own-ports.ts';

/** The member networks of a region in the regions file. */
export interface MemberNetworks {
  /** Absent: every network. */
  allowed?: readonly string[] | undefined;
  denied?: readonly string[] | undefined;
  /** Refused at every address. */
  deniedPorts?: readonly OwnPort[];
}

export interface MemberRefusal {
  /** The field to change. */
  field: 'address' | 'port';
  message: string;
}

/** Returns why tenants must not be connected to this address and port; null when they may. */
export type MemberRule = (address: string, port: number) => MemberRefusal | null;
/** The current rule of a region. A region that is not in the regions file has the default rule. */
export type MemberRules = (regionId: number) => MemberRule;

export interface MemberRulesOptions {
  regions: ReadonlyMap<number, MemberNetworks>;
  /** Of all regions. */
  vipRanges: readonly string[];
  /** Addresses of hosts that Cloudyard depends on. */
  controlPlane(): readonly string[];
  ownPorts(): readonly OwnPort[];
  /** Networks that this host delivers locally. */
  localNetworks(): readonly string[];
}

interface Guard {
  network: Network;
  what: string;
}

const loopback = ['127.0.0.0/8', '::1/128'].map(parseNetwork);

/** Of Amazon, Google, Alibaba, Azure and Oracle; others are link-local. That of Azure looks like one of the public internet. */
export const metadataAddresses = [
  ...['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
];

const guards: Guard[] = [
  ...loopback.map((network) => ({ network, what: 'loopback' })),
  ...guarded('link-local', '169.254.0.0/16', 'fe80::/10'),
  ...guarded('a cloud metadata address', ...metadataAddresses),
  ...guarded('an IPv4 address inside IPv6 (NAT64, 6to4 or Teredo)', '64:ff9b::/96', '64:ff9b:1::/48'),
  ...guarded('an IPv4 address inside IPv6 (NAT64, 6to4 or Teredo)', '2002::/16', '2001::/32'),
];

const noHosts: Guard[] = [
  ...guarded('an unspecified address', '0.0.0.0/8', '::'),
  ...guarded('a broadcast address', '255.255.255.255'),
  ...guarded('a multicast address', '224.0.0.0/4', 'ff00::/8'),
];

const everywhere = ['0.0.0.0/0', '::/0'];
const remedy = "members must be in the region's member_networks";

/** The returned rules read addresses and ports of this host at each call, because these change. */
export function createMemberRules(options: MemberRulesOptions): MemberRules {
  const vips = options.vipRanges.map(parseNetwork);
  const regions = new Map([...options.regions].map(([id, networks]) => [id, parsed(networks)]));
  const unknown = parsed({});
  return (regionId) => {
    const { allowed, denied, deniedPorts } = regions.get(regionId) ?? unknown;
    const local = options.localNetworks().map(parseNetwork);
    const own = [...local, ...options.controlPlane().map(parseNetwork)].filter(([address]) => !isLoopback(address));
    const closed = [...guards, ...own.map((network) => ({ network, what: 'an address of Cloudyard itself' }))].map(
      (guard) => ({ ...guard, openings: allowed.filter((network) => isInside(network, guard.network)) }),
    );
    const ports = daemonsOf(options.ownPorts());
    const isLocal = (address: Address) => isLoopback(address) || local.some((network) => contains(network, address));

    const refusalOf = (address: Address): string | null => {
      const within = (network: Network) => contains(network, address);
      const nobody = noHosts.find(({ network }) => within(network));
      if (nobody) return `is ${nobody.what}, which no member can have`;
      if (vips.some(within)) return 'is an address of load balancers; a load balancer cannot be a member';
      if (denied.some(within)) return `is denied by the region; ${remedy}`;
      const guard = closed.find(({ network, openings }) => within(network) && !openings.some(within));
      if (guard) return `is ${guard.what}; ${remedy}`;
      return allowed.some(within) ? null : `is not allowed; ${remedy}`;
    };

    return (text, port) => {
      const address = parseHost(text);
      const why = refusalOf(address);
      if (why !== null) return { field: 'address', message: `${text} ${why}` };
      const daemon = deniedPorts.get(port) ?? (isLocal(address) ? ports.get(port) : undefined);
      if (daemon === undefined) return null;
      return { field: 'port', message: `port ${port} of ${text} is Cloudyard's own (${daemon}); use another port` };
    };
  };
}

function guarded(what: string, ...networks: string[]): Guard[] {
  return networks.map((network) => ({ network: parseNetwork(network), what }));
}

function parsed({ allowed = everywhere, denied = [], deniedPorts = [] }: MemberNetworks) {
  return {
    allowed: allowed.map(parseNetwork),
    denied: denied.map(parseNetwork),
    deniedPorts: daemonsOf(deniedPorts),
  };
}

/** By port. */
function daemonsOf(ports: readonly OwnPort[]): Map<number, string> {
  return new Map(ports.map(({ daemon, port }) => [port, daemon]));
}

function isInside([address, prefix]: Network, outer: Network): boolean {
  return prefix >= outer[1] && contains(outer, address);
}

function isLoopback(address: Address): boolean {
  return loopback.some((network) => contains(network, address));
}

/** Whether a region with these networks allows members on the loopback interface of the worker's host. */
export function opensLoopback({ allowed = [] }: MemberNetworks): boolean {
  return allowed.map(parseNetwork).some((network) => loopback.some((outer) => isInside(network, outer)));
}
