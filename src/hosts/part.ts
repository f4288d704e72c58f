/**
 * What an agent (`cloudyard host`) serves on its host: one part for load balancers, file shares, registries and addresses.
 * The agent calls the parts, and a part knows neither the database nor the lease.
 *
 * Order of calls: `start`, `converge`, then `serve`; `apply` and `hostsChanged` at any time after `converge` began;
 * `stopServing` when the lease is lost, the agent stops, or a part has failed for the time of a lease, after which the agent
 * begins with `start` again.
 */
import { join } from 'node:path';
import type { RegionStorage } from '../drivers/kind.ts';
import type { DriverError } from '../errors/driver-error.ts';
import type { DriverStatus } from '../platform/driver-status.ts';

/** The kinds of published states. */
export type PublishedKind = 'load_balancer' | 'file_share' | 'registry_hosting';

export type HostState = 'active' | 'draining' | 'drained';

/** A host as the others see it. */
export interface HostView {
  name: string;
  /** Its address among the hosts. */
  address: string;
  /** Where it adds addresses that move; null: the interface that has its address. */
  interface: string | null;
  state: HostState;
  leaseValid: boolean;
  /** Whether it has converged, so that it may serve. */
  converged: boolean;
}

/** `hosts` of the regions file, with its defaults. */
interface HostsSettings {
  /** One NFS group each. */
  nfsAddresses: string[];
  apiAddress: string | null;
  registryAddress: string | null;
  /** How many groups the addresses of load balancers are in. */
  addressGroups: number;
  /** The virtual router id of the first group. */
  virtualRouterId: number;
  leaseSeconds: number;
}

/** A region of several hosts, as one of them sees it. */
export interface RegionView {
  regionId: number;
  /** IPv4 and IPv6 networks of the addresses of load balancers. */
  vipRange: string | null;
  vipRangeV6: string | null;
  /** Null: without shared storage. */
  storage: RegionStorage | null;
  settings: HostsSettings;
  /** The name of this host. */
  self: string;
  /** Ordered by name, this one included. */
  hosts: HostView[];
}

/** The names of the hosts that may take address groups and NFS groups: active ones, or those that drain if there are none. */
export function eligibleHosts({ hosts }: Pick<RegionView, 'hosts'>): string[] {
  const active = servingIn(hosts, 'active');
  return (active.length > 0 ? active : servingIn(hosts, 'draining')).map(({ name }) => name);
}

/** Whether another host may take what this one holds. If not, this one serves although it drains. */
export function canHandOver({ hosts, self }: Pick<RegionView, 'hosts' | 'self'>): boolean {
  return servingIn(hosts, 'active').some(({ name }) => name !== self);
}

function servingIn(hosts: HostView[], wanted: HostState): HostView[] {
  return hosts.filter(({ leaseValid, converged, state }) => leaseValid && converged && state === wanted);
}

/** What the agent of a host serves of one kind of resource. Every call is idempotent. */
export interface HostPart<State = unknown> {
  /** The kind of its published states; null: it has none (addresses). */
  readonly kind: PublishedKind | null;
  /** As the view of the hosts names it: `load balancers`. */
  readonly title: string;
  /**
   * How many calls of `apply` run at once, for different ids. Calls for one id never overlap.
   * Default: 16.
   */
  readonly concurrency?: number;
  /** Starts, or adopts, its programs. Called again when the agent converges again: programs that serve continue to do so. */
  start(region: RegionView): Promise<void>;
  /**
   * Before the host serves: brings it to exactly these states and removes everything else. Returns the states that could not be
   * applied, by id; of those nothing older is served either. The agent applies them again with `apply`.
   */
  converge(states: ReadonlyMap<string, State>, signal: AbortSignal): Promise<Map<string, DriverError>>;
  /** Null: removed. @throws DriverError */
  apply(id: string, state: State | null, signal: AbortSignal): Promise<void>;
  /**
   * The host has converged, and is active or waits to drain until another host can take what it holds: it may take addresses,
   * until `drain` or `stopServing`.
   */
  serve(): Promise<void>;
  /** The hosts of the region, their addresses, leases or states have changed. */
  hostsChanged(region: RegionView): Promise<void>;
  /** The lease is lost, or the host stops: serves nothing when this resolves. Must not depend on the network. */
  stopServing(): Promise<void>;
  /** Instead of `stopServing` when the next agent of this host adopts the programs: everything keeps running. */
  release?(): Promise<void>;
  /** Moves what this host serves to others, one group at a time; resolves when it holds nothing. `serve` reverts it. */
  drain(signal: AbortSignal): Promise<void>;
  /** Reads memory only. */
  status(): DriverStatus;
  /** Address groups or NFS groups that this host holds now, for `GET /cloudyard/v1/hosts`. Reads memory only. */
  heldGroups?(): string[];
  /** JSON that the region's worker reads with `Publisher.readings`, such as counters; called about once a second. */
  readings?(): Promise<unknown>;
}

/** How a driver of the region's worker publishes the states of one kind, which the parts of the agents get (publisher.ts). */
export interface Publisher<State> {
  /**
   * Publishes a state (null: removed) and resolves when every host of the region has applied it or is known to serve nothing.
   * @throws DriverError of the hosts; `message` names them; permanent if that of any host is
   */
  publish(id: string, state: State | null, signal: AbortSignal): Promise<void>;
  /** Ids of the states that are not removed. */
  ids(): Promise<string[]>;
  /** All states that are not removed and that can be decrypted. */
  states(): Promise<Map<string, State>>;
  /** Why states that are not removed cannot be decrypted, by id: the key file was lost. `publish` replaces them. */
  undecodable(): Promise<Map<string, Error>>;
  /** The readings of this kind that hosts have reported within the last seconds, by the name of the host. */
  readings<Readings>(): Promise<Map<string, Readings>>;
}

/** The folder of the agent in the data directory. */
export const agentFolder = (dataDir: string) => join(dataDir, 'host');

/**
 * The file that says until when this host may hold addresses: a number, in seconds of the first field of `/proc/uptime`. The
 * agent replaces it with each renewal, and removes it when the host must not hold addresses: before it has converged, when it
 * is drained, and after it lost its lease. A missing file means no. keepalived's check and everything else that must stop
 * when the agent was killed or hangs compares it with `/proc/uptime`, which no change of the clock affects.
 */
export const leaseFileOf = (dataDir: string) => join(agentFolder(dataDir), 'lease');
