/** What /metrics shows, in Prometheus' text format. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Db } from './db.ts';

export type Metrics = ReturnType<typeof createMetrics>;

interface RequestCounts {
  running: number;
  waiting: number;
  waits: number;
}

export function createMetrics() {
  const registry = new Registry();
  const pools = new Map<string, Db['$client']>();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'cloudyard_http_request_seconds',
    help: 'Time to answer a request, by operation and status',
    labelNames: ['operation', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30],
    registers: [registry],
  });
  const tasks = new Histogram({
    name: 'cloudyard_task_seconds',
    help: 'Time from the acceptance of a task to its end, by type and state',
    labelNames: ['type', 'state'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers: [registry],
  });
  const driverErrors = new Counter({
    name: 'cloudyard_driver_errors_total',
    help: 'Reconciles that failed, by resource',
    labelNames: ['resource'],
    registers: [registry],
  });
  const deliveries = new Counter({
    name: 'cloudyard_delivery_attempts_total',
    help: 'Attempts to deliver a notification, by channel and what became of them',
    labelNames: ['channel', 'outcome'],
    registers: [registry],
  });
  const refusals = new Counter({
    name: 'cloudyard_client_refusals_total',
    help: 'Requests refused with 429 because of a limit of their client, by limit',
    labelNames: ['limit'],
    registers: [registry],
  });
  let requestCounts = (): RequestCounts => ({ running: 0, waiting: 0, waits: 0 });
  new Gauge({
    name: 'cloudyard_requests',
    help: 'Requests of clients, by state: running and waiting for their turn, and those that wait for a task',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { running, waiting, waits } = requestCounts();
      this.set({ state: 'running' }, running);
      this.set({ state: 'waiting' }, waiting);
      this.set({ state: 'open_wait' }, waits);
    },
  });
  return {
    observeRequest(operation: string, status: number, seconds: number) {
      requests.labels(operation, String(status)).observe(seconds);
    },
    observeTask(type: string, state: string, seconds: number) {
      tasks.labels(type, state).observe(seconds);
    },
    countDriverError(resource: string) {
      driverErrors.inc({ resource });
    },
    countRefusal(limit: string) {
      refusals.inc({ limit });
    },
    /** Shows what the requests of clients do. */
    watchRequests(state: () => RequestCounts) {
      requestCounts = state;
    },
    countDelivery(channel: string, outcome: string) {
      deliveries.inc({ channel, outcome });
    },
    /** Adds a pool to the gauges of connections; the first one is asked for the queue too, which is asked only when somebody looks. */
    watchDatabase(name: string, db: Db) {
      pools.set(name, db.$client);
      if (pools.size > 1) return;
      const pool = db.$client;
      new Gauge({
        name: 'cloudyard_database_connections',
        help: 'Connections of this process, by state; `waiting` counts requests for one',
        labelNames: ['pool', 'state'],
        registers: [registry],
        collect() {
          for (const [name, { totalCount, idleCount, waitingCount }] of pools) {
            this.set({ pool: name, state: 'busy' }, totalCount - idleCount);
            this.set({ pool: name, state: 'idle' }, idleCount);
            this.set({ pool: name, state: 'waiting' }, waitingCount);
          }
        },
      });
      new Gauge({
        name: 'cloudyard_queue_jobs',
        help: 'Jobs in the queue, by state',
        labelNames: ['state'],
        registers: [registry],
        async collect() {
          this.reset();
          // The database may be away: the other metrics are wanted all the more then.
          const { rows } = await pool
            .query<{ ready: number; delayed: number; running: number }>(
              `select count(*) filter (where locked_at is null and run_at <= now()) as ready,
                      count(*) filter (where locked_at is null and run_at > now()) as delayed,
                      count(*) filter (where locked_at is not null) as running
               from graphile_worker.jobs where attempts < max_attempts or locked_at is not null`,
            )
            .catch(() => ({ rows: [{}] }));
          for (const [state, count] of Object.entries(rows[0]!)) this.set({ state }, count);
        },
      });
    },
    /** Counts how load balancers were changed, asked when somebody looks. */
    watchLoadBalancers(counters: () => { reloads: number; runtimeChanges: number }) {
      new Counter({
        name: 'cloudyard_load_balancer_changes_total',
        help: 'Changes of the proxy, by how they were made: with a reload, or at run time',
        labelNames: ['how'],
        registers: [registry],
        collect() {
          const { reloads, runtimeChanges } = counters();
          this.reset();
          this.inc({ how: 'reload' }, reloads);
          this.inc({ how: 'runtime' }, runtimeChanges);
        },
      });
    },
    /** How late the schedules are, asked when somebody looks. */
    watchSchedules(latenessSeconds: () => Promise<number>) {
      new Gauge({
        name: 'cloudyard_schedule_lateness_seconds',
        help: 'How long the most overdue schedule has been waiting for its run',
        registers: [registry],
        async collect() {
          // The database may be away.
          this.set(await latenessSeconds().catch(() => Number.NaN));
        },
      });
    },
    /** Shows how many API keys are in memory, and how old what is known of them may be. */
    watchApiKeys(state: () => { keys: number; ageSeconds: number }) {
      new Gauge({
        name: 'cloudyard_api_keys',
        help: 'API keys that authorize knows',
        registers: [registry],
        collect() {
          this.set(state().keys);
        },
      });
      new Gauge({
        name: 'cloudyard_api_keys_age_seconds',
        help: 'Time since authorize last heard of the database; it grows while the database is away',
        registers: [registry],
        collect() {
          this.set(state().ageSeconds);
        },
      });
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}
