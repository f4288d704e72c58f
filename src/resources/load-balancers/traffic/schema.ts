/** Shapes of the traffic history, and of the older metrics of it. */
import { type Static, Type } from 'typebox';
import { Body, Collection, Component, Described, OrNull, Uuid } from '../../../http/shapes.ts';

export const TrafficQuery = Type.Object({
  hours: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 168, default: 1, description: 'Length of the period before now' }),
  ),
  listener_id: Type.Optional(Described(Uuid, 'Only the traffic of this listener')),
});
export type TrafficQuery = Static<typeof TrafficQuery>;

const Count = (description: string) => Type.Integer({ description });

export const LoadBalancerTrafficHistory = Component('LoadBalancerTrafficHistory', {
  count: Count('Number of points'),
  results: Type.Array(
    Component(
      'LoadBalancerTrafficPoint',
      {
        time: Type.String({ description: 'Start of the step, RFC 3339 in UTC' }),
        requests: Count('HTTP requests; 0 for TCP and UDP listeners'),
        connections: Count('New connections'),
        open_connections: Count('Highest number of open connections among the readings'),
        bytes_in: Count('Bytes received from clients'),
        bytes_out: Count('Bytes sent to clients'),
        request_errors: Count('Invalid or rejected requests'),
        server_errors: Count('HTTP responses 5xx, and TCP and UDP connections that reached no member'),
      },
      'Sums of one step',
    ),
    { description: 'Points of whole steps, the oldest first' },
  ),
  step_seconds: Count('Length of a step: 60 for periods of up to 5 hours, 600 for up to 48 hours, otherwise 3600'),
});
export type LoadBalancerTrafficHistory = Static<typeof LoadBalancerTrafficHistory>;

export const RequestMetrics = Body('GetLoadBalancerMetrics', [{ time_interval: 6, time_unit: 'hour' }], {
  time_interval: Type.Integer({
    minimum: 1,
    maximum: 8760,
    description: 'Length of the period before now, in `time_unit`; traffic is retained for a week',
  }),
  time_unit: Type.Enum(['day', 'hour'], { description: 'Unit of `time_interval`' }),
});
export type RequestMetrics = Static<typeof RequestMetrics>;

const LoadBalancerMetrics = Component(
  'LoadBalancerMetrics',
  {
    cpu_util: OrNull.number('Always null: unknown for a single load balancer'),
    memory_util: OrNull.number('Always null: unknown for a single load balancer'),
    network_Bps_egress: OrNull.number('Bits sent to clients per second; `Bps` in the name is historical'),
    network_Bps_ingress: OrNull.number('Bits received from clients per second; `Bps` in the name is historical'),
    network_pps_egress: OrNull.number('Always null: packets are not counted'),
    network_pps_ingress: OrNull.number('Always null: packets are not counted'),
    time: OrNull.text('Start of the step, RFC 3339 in UTC'),
  },
  'Averages of one step: a minute, ten minutes or an hour',
);
export type LoadBalancerMetrics = Static<typeof LoadBalancerMetrics>;
export const LoadBalancerMetricsCollection = Collection(LoadBalancerMetrics);
