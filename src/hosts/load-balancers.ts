/** Load balancers of a region of several hosts: the driver of the worker, which publishes them, and the part of a host. */
import type { DriverStatus } from '../platform/driver-status.ts';
import type { DesiredLoadBalancer, LoadBalancerDriver } from '../drivers/load-balancer.ts';
import { driverPart } from './driver-part.ts';
import type { HostPart, Publisher } from './part.ts';
import { createReadingMerger, type ReportedReading, reportReading } from './readings.ts';

const title = 'load balancers';
const quarantineMs = 60_000;

/** Serves every load balancer of the region, so that the addresses can move to this host at any time. */
export function loadBalancerPart(open: () => Promise<LoadBalancerDriver>): HostPart<DesiredLoadBalancer> {
  return driverPart<DesiredLoadBalancer, LoadBalancerDriver>({
    ...{ kind: 'load_balancer', title, open },
    readings: async (driver) => (await driver.read()).map(reportReading),
    refresh: (driver) => driver.recheckMembers(),
  });
}

/** `status`: of the hosts together. */
export function createPublishedLoadBalancerDriver(
  publisher: Publisher<DesiredLoadBalancer>,
  status: () => DriverStatus,
): LoadBalancerDriver {
  const merge = createReadingMerger();
  return {
    ...{ name: 'hosts', real: true, status },
    start: async () => undefined,
    stop: async () => undefined,
    apply: (desired, signal) => publisher.publish(desired.id, desired, signal),
    remove: (id, signal) => publisher.publish(id, null, signal),
    list: () => publisher.ids(),
    // Their agents serve them again once they are published again.
    findDamaged: async () => [...(await publisher.undecodable()).keys()],
    quarantine: (id) => publisher.publish(id, null, AbortSignal.timeout(quarantineMs)),
    read: async () => merge(await publisher.readings<ReportedReading[]>()),
    // Each agent does it for its host.
    recheckMembers: async () => undefined,
    counters: () => ({ reloads: 0, runtimeChanges: 0 }),
  };
}
