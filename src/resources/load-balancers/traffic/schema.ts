/** Shapes of the traffic history. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Described, Uuid } from '../../../http/shapes.ts';

export const TrafficQuery = Type.Object({
  hours: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 168, default: 1, description: 'Length of the period before now' }),
  ),
  listener_id: Type.Optional(Described(Uuid, 'Only the traffic of this listener')),
});
export type TrafficQuery = Static<typeof TrafficQuery>;

const Count = (description: string) => Type.Integer({ description });

export const LoadBalancerTrafficHistory = Type.Object(
  {
    count: Count('Number of points'),
    results: Type.Array(
      Type.Object(
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
        { title: 'LoadBalancerTrafficPoint', description: 'Sums of one step' },
      ),
      { description: 'Points of whole steps, the oldest first' },
    ),
    step_seconds: Count('Length of a step: 60 for periods of up to 5 hours, 600 for up to 48 hours, otherwise 3600'),
  },
  { title: 'LoadBalancerTrafficHistory' },
);
export type LoadBalancerTrafficHistory = Static<typeof LoadBalancerTrafficHistory>;
