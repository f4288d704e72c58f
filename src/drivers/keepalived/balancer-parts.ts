/**
 * The parts of an agent for load balancers of a region of several hosts: HAProxy with the same configuration on every host,
 * and the addresses, which are on one of them at a time.
 *
 * Order: a load balancer is served before its address is added, and its address is removed first.
 */
import type { HostPart, RegionView } from '../../hosts/part.ts';
import { addressesOf, type DesiredLoadBalancer, type LoadBalancerDriver, type Peers } from '../load-balancer.ts';
import { createMovingAddresses, type MovingAddressesOptions } from './part.ts';
import { movingAddressError } from '../own-host.ts';

interface BalancerPartsOptions extends Omit<MovingAddressesOptions, 'checks' | 'connections'> {
  /** Makes and starts the driver. */
  open(peers: Peers | null): Promise<LoadBalancerDriver>;
  /** The part that serves load balancers with the driver. */
  partOf(open: () => Promise<LoadBalancerDriver>): HostPart<DesiredLoadBalancer>;
  /** Rejects while the API server of this host does not work; null: the API has no address that moves. */
  checkApi: (() => Promise<void>) | null;
  /** Rejects while this host serves no registries; null: they have no address that moves. */
  checkRegistry: (() => Promise<void>) | null;
}

/** In the order in which they start. */
export function balancerParts({ open, partOf, checkApi, checkRegistry, ...options }: BalancerPartsOptions) {
  let driver: LoadBalancerDriver | null = null;
  let peers: Peers | null = null;
  const opened = () => {
    if (!driver?.amongHosts) throw movingAddressError('the load balancers of this host are not served');
    return driver.amongHosts;
  };
  const part = partOf(async () => (driver = await open(peers)));
  const addresses = createMovingAddresses({
    ...options,
    checks: {
      balancers: async () => opened().check(),
      ...(checkApi && { api: checkApi }),
      ...(checkRegistry && { registry: checkRegistry }),
    },
    connections: {
      close: async () => opened().closeConnections(),
      active: async (some) => opened().activeRequests(some),
    },
  });
  const setPeers = async (region: RegionView) => {
    peers = peersOf(region);
    // It is restarting, with the peers of its first start. The caller tries again.
    if (driver?.real && !driver.amongHosts) opened();
    await driver?.amongHosts?.setPeers(peers);
  };
  return [withAddresses(part, setPeers, (all) => addresses.setBalancerAddresses(all)), addresses] as const;
}

function withAddresses(
  part: HostPart<DesiredLoadBalancer>,
  setPeers: (region: RegionView) => Promise<void>,
  setAddresses: (addresses: string[]) => Promise<void>,
): HostPart<DesiredLoadBalancer> {
  const addresses = new Map<string, string[]>();
  let isUpdated = true;
  const update = async () => {
    try {
      await setAddresses([...addresses.values()].flat());
      isUpdated = true;
    } catch (err) {
      // The next call for any load balancer, among them the retry, updates again.
      isUpdated = false;
      throw err;
    }
  };
  return {
    ...part,
    async start(region) {
      await setPeers(region);
      await part.start(region);
    },
    async converge(states, signal) {
      const failed = await part.converge(states, signal);
      addresses.clear();
      for (const [id, state] of states) addresses.set(id, addressesOf(state));
      await update();
      return failed;
    },
    async apply(id, state, signal) {
      if (state === null) {
        if (addresses.delete(id) || !isUpdated) await update();
        return part.apply(id, state, signal);
      }
      const before = addresses.get(id);
      await part.apply(id, state, signal);
      const after = addressesOf(state);
      if (isUpdated && String(before) === String(after)) return undefined;
      addresses.set(id, after);
      return update();
    },
    async hostsChanged(region) {
      await setPeers(region);
      await part.hostsChanged(region);
    },
  };
}

function peersOf({ self, hosts }: RegionView): Peers | null {
  const peers = hosts.map(({ name, address }) => ({ name, address }));
  const own = peers.find(({ name }) => name === self);
  return own ? { self: own, others: peers.filter((peer) => peer !== own) } : null;
}
