/** The metrics of /metrics, in the text format of Prometheus. */
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Db } from './db.ts';
import type { DiskSpace } from './disk-space.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** The metrics of one process, for `sum`. */
export type MetricsJson = MetricObjectWithValues<MetricValue<string>>[];

interface RequestCounts {
  running: number;
  waiting: number;
  waits: number;
}

interface QueueCounts {
  ready: number;
  delayed: number;
  running: number;
  oldestSeconds: number;
}

/**
 * `aggregator: 'max'` marks values that each process of a server reads from the database: `sum` would add them up.
 */
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
    help: 'Attempts to deliver a notification, by channel and outcome',
    labelNames: ['channel', 'outcome'],
    registers: [registry],
  });
  const missedRuns = new Counter({
    name: 'cloudyard_schedule_missed_runs_total',
    help: 'Runs of schedules that started late, and instants that a late run replaced, by kind: late or skipped',
    labelNames: ['kind'],
    registers: [registry],
  });
  const refusals = new Counter({
    name: 'cloudyard_client_refusals_total',
    help: 'Requests refused because of a limit of their client, or of the backlog of all clients, by limit',
    labelNames: ['limit'],
    registers: [registry],
  });
  const jobsEnded = new Counter({
    name: 'cloudyard_jobs_ended_total',
    help: 'Jobs that this process has run, by outcome: done, or to be run again',
    labelNames: ['outcome'],
    registers: [registry],
  });
  let requestCounts = (): RequestCounts => ({ running: 0, waiting: 0, waits: 0 });
  new Gauge({
    name: 'cloudyard_requests',
    help: 'Requests of clients, by state: running, waiting for a slot, or open_wait for a task',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { running, waiting, waits } = requestCounts();
      this.set({ state: 'running' }, running);
      this.set({ state: 'waiting' }, waiting);
      this.set({ state: 'open_wait' }, waits);
    },
  });
  let countStreams = () => 0;
  new Gauge({
    name: 'cloudyard_event_streams',
    help: 'Open event streams',
    registers: [registry],
    collect() {
      this.set(countStreams());
    },
  });
  /** By operation and status: to find the labels takes longer than to observe. */
  const durationsOf = new Map<string, ReturnType<typeof requests.labels>>();
  return {
    observeRequest(operation: string, status: number, seconds: number) {
      const labels = `${operation} ${status}`;
      let durations = durationsOf.get(labels);
      if (!durations) durationsOf.set(labels, (durations = requests.labels(operation, String(status))));
      durations.observe(seconds);
    },
    observeTask({ type, state, seconds }: { type: string; state: string; seconds: number }) {
      tasks.labels(type, state).observe(seconds);
    },
    countDriverError(resource: string) {
      driverErrors.inc({ resource });
    },
    countRefusal(limit: string) {
      refusals.inc({ limit });
    },
    /** Adds the gauge of requests. */
    watchRequests(state: () => RequestCounts) {
      requestCounts = state;
    },
    /** Adds the gauge of event streams. */
    watchEventStreams(count: () => number) {
      countStreams = count;
    },
    countDelivery(channel: string, outcome: string) {
      deliveries.inc({ channel, outcome });
    },
    /** Adds a pool to the gauges of connections. */
    watchDatabase(name: string, db: Db) {
      pools.set(name, db.$client);
      if (pools.size > 1) return;
      new Gauge({
        name: 'cloudyard_database_connections',
        help: 'Connections of this server, by state; `waiting` counts requests for a connection',
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
    },
    countJobEnd(end: object) {
      jobsEnded.inc({ outcome: 'done' in end ? 'done' : 'again' });
    },
    /** Adds the gauges of jobs; `count` is called at each scrape. */
    watchQueue(count: () => Promise<QueueCounts>) {
      let counting: Promise<QueueCounts | null> | null = null;
      // Without the database the gauges are absent: the other metrics are needed most then.
      const counts = () =>
        (counting ??= count()
          .catch(() => null)
          .finally(() => (counting = null)));
      new Gauge({
        name: 'cloudyard_queue_jobs',
        aggregator: 'max',
        help: 'Jobs in the queue, by state',
        labelNames: ['state'],
        registers: [registry],
        async collect() {
          this.reset();
          const { oldestSeconds: _, ...states } = (await counts()) ?? {};
          for (const [state, value] of Object.entries(states)) this.set({ state }, value);
        },
      });
      new Gauge({
        name: 'cloudyard_queue_oldest_job_seconds',
        aggregator: 'max',
        help: 'How long the oldest ready job has been waiting',
        registers: [registry],
        async collect() {
          this.set((await counts())?.oldestSeconds ?? Number.NaN);
        },
      });
    },
    /** Adds the gauge of the data directory; `read` is called at each scrape. */
    watchDisk(read: () => DiskSpace) {
      new Gauge({
        name: 'cloudyard_data_directory_bytes',
        help: 'Bytes of the filesystem of the data directory: total, free, and the reserve below which creates are refused',
        labelNames: ['kind'],
        registers: [registry],
        collect() {
          const { totalBytes, freeBytes, reserveBytes } = read();
          this.set({ kind: 'total' }, totalBytes);
          this.set({ kind: 'free' }, freeBytes);
          this.set({ kind: 'reserve' }, reserveBytes);
        },
      });
    },
    /** Adds the counter of proxy changes; `counters` is called at each scrape. */
    watchLoadBalancers(counters: () => { reloads: number; runtimeChanges: number }) {
      new Counter({
        name: 'cloudyard_load_balancer_changes_total',
        help: 'Changes of the proxy, by method: with a reload, or at run time',
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
    countMissedRuns(late: number, skipped: number) {
      missedRuns.inc({ kind: 'late' }, late);
      missedRuns.inc({ kind: 'skipped' }, skipped);
    },
    /** Adds the gauges of schedules; the functions are called at each scrape. */
    watchSchedules(latenessSeconds: () => Promise<number>, countLate: () => Promise<number>) {
      new Gauge({
        name: 'cloudyard_schedules_late',
        aggregator: 'max',
        help: 'Schedules that have been waiting for their run for longer than CLOUDYARD_SCHEDULE_LATE_SECONDS',
        registers: [registry],
        async collect() {
          // Without the database the value is unknown.
          this.set(await countLate().catch(() => Number.NaN));
        },
      });
      new Gauge({
        name: 'cloudyard_schedule_lateness_seconds',
        aggregator: 'max',
        help: 'How long the most overdue schedule has been waiting for its run',
        registers: [registry],
        async collect() {
          // Without the database the value is unknown.
          this.set(await latenessSeconds().catch(() => Number.NaN));
        },
      });
    },
    /** Adds the gauges of API keys in memory and of their age. */
    watchApiKeys(state: () => { keys: number; ageSeconds: number }) {
      new Gauge({
        name: 'cloudyard_api_keys',
        aggregator: 'max',
        help: 'API keys in the memory of authorize',
        registers: [registry],
        collect() {
          this.set(state().keys);
        },
      });
      new Gauge({
        name: 'cloudyard_api_keys_age_seconds',
        aggregator: 'max',
        help: 'Age of the API keys in memory; it grows while the database is away',
        registers: [registry],
        collect() {
          this.set(state().ageSeconds);
        },
      });
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
    json: (): Promise<MetricsJson> => registry.getMetricsAsJSON(),
    /** The text of the metrics of several processes of one server. */
    sum: (processes: MetricsJson[]): Promise<string> => AggregatorRegistry.aggregate(processes).metrics(),
  };
}
