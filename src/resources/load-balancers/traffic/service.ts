/**
 * Metrics and traffic history of a load balancer, from the counters of the proxy. One process serves all load balancers of
 * a region and does not count packets, so processor, memory and packets of one load balancer are unknown and null.
 */
import type { Scope } from '../../../authz/actor.ts';
import { type Clock, withZone } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { type Collection, requireFound } from '../../service-kit.ts';
import type { LoadBalancerRow } from '../table.ts';
import type { LoadBalancerMetrics, LoadBalancerTrafficHistory, RequestMetrics, TrafficQuery } from './schema.ts';
import * as store from './store.ts';

interface LoadBalancerTrafficDeps {
  db: Db;
  clock: Clock;
  /** @throws ClientError 404 */
  loadBalancer(scope: Scope, id: string): Promise<LoadBalancerRow>;
}

const minute = 60_000;
const hour = 60 * minute;
/** The step between two points, by the requested span: at most about 300 points. */
const steps = [
  { upTo: 5 * hour, step: minute },
  { upTo: 48 * hour, step: 10 * minute },
  { upTo: Number.POSITIVE_INFINITY, step: hour },
];

export function createLoadBalancerTraffic({ db, clock, loadBalancer }: LoadBalancerTrafficDeps) {
  /** Points of whole steps, oldest first, at most since the creation and the start of the history. */
  const points = async (
    read: store.ReadTraffic,
    id: string,
    createdAt: Date,
    span: number,
  ): Promise<{ seconds: number; points: store.Traffic[] }> => {
    const now = clock.now().getTime();
    const { step } = steps.find(({ upTo }) => span <= upTo)!;
    const begin = Math.max(now - span, now - store.historyMs, createdAt.getTime());
    const from = Math.floor(begin / step) * step;
    const to = Math.floor(now / step) * step;
    const found = await read(db, id, new Date(from), new Date(to), step / 1000);
    const byTime = new Map(found.map((traffic) => [traffic.at, traffic]));
    const all = [];
    for (let at = from; at < to; at += step) all.push(byTime.get(at) ?? { ...noTraffic, at });
    return { seconds: step / 1000, points: all };
  };

  return {
    async metrics(scope: Scope, id: string, request: RequestMetrics): Promise<Collection<LoadBalancerMetrics>> {
      const { createdAt } = await loadBalancer(scope, id);
      const span = request.time_interval * (request.time_unit === 'day' ? 24 * hour : hour);
      const found = await points(store.trafficOfLoadBalancer, id, createdAt, span);
      return {
        count: found.points.length,
        results: found.points.map((traffic) => toMetrics(traffic, found.seconds)),
      };
    },

    /** @throws ClientError 404 */
    async history(scope: Scope, id: string, query: TrafficQuery): Promise<LoadBalancerTrafficHistory> {
      const { listener_id: listenerId, hours = 1 } = query;
      const { createdAt } = await loadBalancer(scope, id);
      const read = listenerId === undefined ? store.trafficOfLoadBalancer : store.trafficOfListener;
      const since =
        listenerId === undefined
          ? createdAt
          : requireFound(await store.listenerCreatedAt(db, id, listenerId), 'listener', listenerId);
      const found = await points(read, listenerId ?? id, since, hours * hour);
      return {
        count: found.points.length,
        step_seconds: found.seconds,
        results: found.points.map((traffic) => ({
          time: withZone(new Date(traffic.at)),
          requests: traffic.requests,
          connections: traffic.connections,
          open_connections: traffic.openConnections,
          bytes_in: traffic.bytesIn,
          bytes_out: traffic.bytesOut,
          request_errors: traffic.requestErrors,
          server_errors: traffic.serverErrors,
        })),
      };
    },
  };
}

const noTraffic = {
  requests: 0,
  connections: 0,
  openConnections: 0,
  bytesIn: 0,
  bytesOut: 0,
  requestErrors: 0,
  serverErrors: 0,
};

/** In bits, as in the official API, in spite of the names of the fields. */
function toMetrics({ at, bytesIn, bytesOut }: store.Traffic, seconds: number) {
  return {
    cpu_util: null,
    memory_util: null,
    network_Bps_egress: (bytesOut * 8) / seconds,
    network_Bps_ingress: (bytesIn * 8) / seconds,
    network_pps_egress: null,
    network_pps_ingress: null,
    time: withZone(new Date(at)),
  };
}
