/** Pure: the row of a new load balancer, and errors for what the API defines and Cloudyard does not support. */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../authz/actor.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import type { CreateLoadBalancer, Logging, LoggingInput } from './schema.ts';
import type { LoadBalancerRow } from './table.ts';

export function regionErrors(
  { name, vipRange, vipRangeV6 }: { name: string; vipRange: string | null; vipRangeV6: string | null },
  { vip_ip_family: family = 'ipv4' }: Pick<ValidFields<CreateLoadBalancer>, 'vip_ip_family'>,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!vipRange) errors.push({ path: 'region_id', message: `region ${name} has no load balancers` });
  if (family !== 'ipv4' && !vipRangeV6) {
    errors.push({ path: 'vip_ip_family', message: 'must be ipv4, because the region has no IPv6 range' });
  }
  return errors;
}

export function unsupportedFields({ floating_ip, vip_port_id }: ValidFields<CreateLoadBalancer>): FieldError[] {
  const errors: FieldError[] = [];
  const report = (path: string, message: string) => errors.push({ path, message });
  if (floating_ip) report('floating_ip', 'is not supported');
  if (vip_port_id !== undefined) report('vip_port_id', 'is not supported; the region assigns the address');
  return errors;
}

export function newLoadBalancer(
  scope: Scope,
  body: CreateLoadBalancer,
  place: { networkId: string; subnetId: string; creatorTaskId: string; now: Date } & Pick<
    LoadBalancerRow,
    'tags' | 'flavor'
  >,
): Omit<LoadBalancerRow, 'vipAddress' | 'vipAddressV6'> {
  return {
    id: randomUUID(),
    clientId: scope.clientId,
    projectId: scope.projectId,
    regionId: scope.regionId,
    name: body.name,
    flavor: place.flavor,
    tags: place.tags,
    adminStateUp: true,
    preferredConnectivity: body.preferred_connectivity ?? 'L2',
    logging: body.logging ? newLogging(body.logging) : null,
    vipIpFamily: body.vip_ip_family ?? 'ipv4',
    vipPortId: randomUUID(),
    vipNetworkId: place.networkId,
    vipSubnetId: place.subnetId,
    provisioningStatus: 'PENDING_CREATE',
    operatingStatus: 'OFFLINE',
    creatorTaskId: place.creatorTaskId,
    generation: 1,
    observedGeneration: 0,
    createdAt: place.now,
    updatedAt: place.now,
    deletedAt: null,
  };
}

export function newLogging(logging: LoggingInput): Logging {
  return {
    destination_region_id: logging.destination_region_id ?? null,
    enabled: logging.enabled ?? false,
    retention_policy: logging.retention_policy ?? null,
    topic_name: logging.topic_name ?? null,
  };
}
