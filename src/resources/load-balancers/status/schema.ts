/** Responses of the status operations of load balancers. */
import { type Static, Type } from 'typebox';
import { Collection, Component, Described, Nullable, Uuid } from '../../../http/shapes.ts';
import { Tag } from '../../../tags/tags.ts';
import { statuses, statusesOfPoolPart } from '../shapes.ts';

const Id = (what: string) => ({ id: Described(Uuid, `ID of the ${what}`) });
const NameOf = (what: string) => ({ name: Type.String({ description: `Name of the ${what}` }) });

const HealthMonitorStatus = Component('LbPoolHealthMonitorStatus', {
  ...Id('health monitor'),
  ...statusesOfPoolPart,
  type: Type.String({ description: 'Type of the checks' }),
});
const MemberStatus = Component('LbPoolMemberStatus', {
  ...Id('member'),
  ...statusesOfPoolPart,
  address: Type.String({ description: 'IP address' }),
  protocol_port: Type.Integer({ description: 'Port number' }),
});
const PoolStatus = Component('LbPoolStatus', {
  ...Id('pool'),
  ...statuses,
  ...NameOf('pool'),
  health_monitor: Described(Nullable(HealthMonitorStatus), 'Health monitor, if any'),
  members: Type.Array(MemberStatus, { description: 'Members' }),
});
const L7RuleStatus = Component('L7RuleStatus', {
  ...Id('rule'),
  ...statuses,
  type: Type.String({ description: 'Type of the rule' }),
});
const L7PolicyStatus = Component('L7PolicyStatus', {
  ...Id('policy'),
  ...statuses,
  ...NameOf('policy'),
  action: Type.String({ description: 'Action of the policy' }),
  position: Type.Integer({ description: 'Position of the policy' }),
  rules: Type.Array(L7RuleStatus, { description: 'Rules, the oldest first' }),
});
const ListenerStatus = Component('ListenerStatus', {
  ...Id('listener'),
  ...statuses,
  ...NameOf('listener'),
  pools: Type.Array(PoolStatus, { description: 'The default pool, if any' }),
  l7policies: Type.Array(L7PolicyStatus, { description: 'L7 policies, by position' }),
});
export const LoadBalancerStatus = Component('LoadBalancerStatus', {
  ...Id('load balancer'),
  ...statuses,
  ...NameOf('load balancer'),
  listeners: Type.Array(ListenerStatus, { description: 'Listeners, the oldest first' }),
  tags: Type.Array(Tag, { description: 'Tags, by key' }),
});
export type LoadBalancerStatus = Static<typeof LoadBalancerStatus>;
export const LoadBalancerStatusCollection = Collection(LoadBalancerStatus);
