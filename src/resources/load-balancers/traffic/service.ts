/**
 * Metrics of a load balancer, from the byte counters of the proxy. One process serves all load balancers of a region and
 * does not count packets, so processor, memory and packets of one load balancer are unknown and null.
 */
import type { Scope } from '../../../authz/actor.ts';
import { withZone } from '../../../platform/clock.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import type { LoadBalancerMetricsCollection, RequestMetrics } from '../schema.ts';
import type { LoadBalancerRow } from '../table.ts';
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
  return {
    /** Points of whole steps, oldest first, at most since the creation of the load balancer and the start of the history. */
    async metrics(scope: Scope, id: string, request: RequestMetrics): Promise<LoadBalancerMetricsCollection> {
      const { createdAt } = await loadBalancer(scope, id);
      const now = clock.now().getTime();
      const span = request.time_interval * (request.time_unit === 'day' ? 24 * hour : hour);
      const { step } = steps.find(({ upTo }) => span <= upTo)!;
      const begin = Math.max(now - span, now - store.historyMs, createdAt.getTime());
      const from = Math.floor(begin / step) * step;
      const to = Math.floor(now / step) * step;
      const found = await store.traffic(db, id, new Date(from), new Date(to), step / 1000);
      const byTime = new Map(found.map((traffic) => [traffic.at, traffic]));
      const results = [];
      for (let at = from; at < to; at += step) results.push(point(at, step / 1000, byTime.get(at)));
      return { count: results.length, results };
    },
  };
}

function point(at: number, seconds: number, traffic: store.Traffic | undefined) {
  return {
    cpu_util: null,
    memory_util: null,
    network_Bps_egress: (traffic?.bytesOut ?? 0) / seconds,
    network_Bps_ingress: (traffic?.bytesIn ?? 0) / seconds,
    network_pps_egress: null,
    network_pps_ingress: null,
    time: withZone(new Date(at)),
  };
}
