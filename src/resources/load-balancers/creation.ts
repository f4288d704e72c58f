/** New load balancers: what may be asked for, and the row that comes of it. */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../authz/actor.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import { defaultFlavor } from './schema.ts';
import type { CreateLoadBalancer, Logging, LoggingInput } from './schema.ts';
import type { LoadBalancerRow } from './store.ts';

/** What a creator may ask for elsewhere and cannot have here. */
export function notOffered(scope: Scope, range: string | null, body: CreateLoadBalancer): FieldError[] {
  const faults: FieldError[] = [];
  if (!range) faults.push({ path: 'region_id', message: `the region ${scope.regionName} offers no load balancers` });
  if (body.floating_ip) faults.push({ path: 'floating_ip', message: 'floating IPs are not offered here' });
  if (body.vip_port_id !== undefined) {
    const message = 'ports are not offered here; a load balancer has an address of the region';
    faults.push({ path: 'vip_port_id', message });
  }
  if (body.vip_ip_family !== undefined && body.vip_ip_family !== 'ipv4') {
    faults.push({ path: 'vip_ip_family', message: 'the region offers ipv4' });
  }
  if (body.vip_subnet_id !== undefined && body.vip_network_id === undefined) {
    faults.push({ path: 'vip_network_id', message: 'is required beside vip_subnet_id' });
  }
  return faults;
}

export function newLoadBalancer(
  scope: Scope,
  body: CreateLoadBalancer,
  made: { networkId: string; subnetId: string; creatorTaskId: string; now: Date } & Pick<LoadBalancerRow, 'tags'>,
): Omit<LoadBalancerRow, 'vipAddress'> {
  return {
    id: randomUUID(),
    clientId: scope.clientId,
    projectId: scope.projectId,
    regionId: scope.regionId,
    name: body.name,
    flavor: body.flavor ?? defaultFlavor,
    tags: made.tags,
    adminStateUp: true,
    preferredConnectivity: body.preferred_connectivity ?? 'L2',
    logging: body.logging ? loggingOf(body.logging) : null,
    vipIpFamily: 'ipv4',
    vipPortId: randomUUID(),
    vipNetworkId: made.networkId,
    vipSubnetId: made.subnetId,
    provisioningStatus: 'PENDING_CREATE',
    operatingStatus: 'OFFLINE',
    creatorTaskId: made.creatorTaskId,
    generation: 1,
    observedGeneration: 0,
    createdAt: made.now,
    updatedAt: made.now,
    deletedAt: null,
  };
}

export function loggingOf(given: LoggingInput): Logging {
  return {
    destination_region_id: given.destination_region_id ?? null,
    enabled: given.enabled ?? false,
    retention_policy: given.retention_policy ?? null,
    topic_name: given.topic_name ?? null,
  };
}
