/** The metrics of /metrics, in the text format of Prometheus. */
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import type { Db } from './db.ts';
import type { DiskSpace } from './driver-status.ts';
import type { CertificateStatus } from './tls/certificate.ts';
import { joined } from './turns.ts';

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

/** The metrics of one process. Functions named `watch…` add gauges whose values are read at each scrape. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const define = definitionsIn(registry);
  return {
    ...requestMetrics(define),
    ...workMetrics(define),
    ...databaseMetrics(define),
    ...serverMetrics(define),
    ...hostMetrics(define),
    ...scheduleMetrics(define),
    contentType: registry.contentType,
    text: () => registry.metrics(),
    json: (): Promise<MetricsJson> => registry.getMetricsAsJSON(),
    /** The text of the metrics of several processes of one server. */
    sum: (processes: MetricsJson[]): Promise<string> => AggregatorRegistry.aggregate(processes).metrics(),
    /** The sum of the counters and histograms of several processes, which outlive them. */
    sumCounters: (processes: MetricsJson[]): MetricsJson =>
      AggregatorRegistry.aggregate(processes.map(withoutGauges)).getMetricsAsArray() as MetricsJson,
  };
}

/** The counters and histograms of a process. The type of a metric is text; its declaration has numbers. */
export const withoutGauges = (process: MetricsJson): MetricsJson =>
  process.filter(({ type }) => String(type) !== 'gauge');

type Define = ReturnType<typeof definitionsIn>;

function definitionsIn(registry: Registry) {
  const registers = [registry];
  type Read = () => LabelledValue[] | Promise<LabelledValue[]>;
  /** Reads its values at each scrape. */
  const gauges = (name: string, help: string, labelNames: string[], read: Read, aggregator?: 'max'): void => {
    new Gauge({
      ...{ name, help, labelNames, registers, ...(aggregator && { aggregator }) },
      async collect() {
        const values = await read();
        this.reset();
        // `reset` sets a gauge without labels to 0.
        this.remove({});
        for (const [labels, value] of values) this.set(labels, value);
      },
    });
  };
  /** Each process of a server reads the same values, from the database, so `sum` takes one. */
  const sharedGauges = (name: string, help: string, labelNames: string[], read: Read) =>
    gauges(name, help, labelNames, read, 'max');
  return {
    registers,
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    histogram: (name: string, help: string, labelNames: string[], buckets: number[]) =>
      new Histogram({ name, help, labelNames, buckets, registers }),
    gauges,
    sharedGauges,
    sharedGauge: (name: string, help: string, read: () => number | Promise<number>) =>
      sharedGauges(name, help, [], async () => sampleOf(await read())),
  };
}

type LabelledValue = [labels: Record<string, string>, value: number];

function byState(counts: object): LabelledValue[] {
  return Object.entries(counts).map(([state, value]) => [{ state }, value]);
}

/** The value of a gauge while the database is away. */
const unknown = () => Number.NaN;

/** A gauge whose value is unknown is absent. JSON between processes would make it 0. */
const sampleOf = (value: number): LabelledValue[] => (Number.isNaN(value) ? [] : [[{}, value]]);

/** Requests of clients. */
function requestMetrics(define: Define) {
  const requests = define.histogram(
    'cloudyard_http_request_seconds',
    'Time to answer a request, by operation and status',
    ['operation', 'status'],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30],
  );
  const refusals = define.counter(
    'cloudyard_client_refusals_total',
    'Requests refused because of a limit of their client, or of the backlog of all clients, by limit',
    'limit',
  );
  let requestCounts = (): RequestCounts => ({ running: 0, waiting: 0, waits: 0 });
  define.gauges(
    'cloudyard_requests',
    'Requests of clients, by state: running, waiting for a slot, or open_wait for a task',
    ['state'],
    () => {
      const { running, waiting, waits } = requestCounts();
      return byState({ running, waiting, open_wait: waits });
    },
  );
  let countStreams = () => 0;
  define.gauges('cloudyard_event_streams', 'Open event streams', [], () => [[{}, countStreams()]]);
  /** By status and operation: finding the labels takes longer than observing. */
  const durationsOf = new Map<number, Map<string, ReturnType<typeof requests.labels>>>();
  return {
    observeRequest(operation: string, status: number, seconds: number) {
      let ofStatus = durationsOf.get(status);
      if (!ofStatus) durationsOf.set(status, (ofStatus = new Map()));
      let durations = ofStatus.get(operation);
      if (!durations) ofStatus.set(operation, (durations = requests.labels(operation, String(status))));
      durations.observe(seconds);
    },
    countRefusal: (limit: string) => refusals.inc({ limit }),
    /** Sets the source of the gauge of requests. */
    watchRequests(state: () => RequestCounts) {
      requestCounts = state;
    },
    /** Sets the source of the gauge of event streams. */
    watchEventStreams(count: () => number) {
      countStreams = count;
    },
  };
}

/** Tasks, jobs, deliveries and runs of schedules. */
function workMetrics(define: Define) {
  const tasks = define.histogram(
    'cloudyard_task_seconds',
    'Time from the acceptance of a task to its end, by type and state',
    ['type', 'state'],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  );
  const driverErrors = define.counter(
    'cloudyard_driver_errors_total',
    'Reconciles that failed, by resource, and whether an operator has to act',
    'resource',
    'shortage',
  );
  const missedRuns = define.counter(
    'cloudyard_schedule_missed_runs_total',
    'Runs of schedules that started late, and instants that a late run replaced, by kind: late or skipped',
    'kind',
  );
  const jobsEnded = define.counter(
    'cloudyard_jobs_ended_total',
    'Jobs that this process has run, by outcome: done, or to be run again',
    'outcome',
  );
  const deliveries = define.counter(
    'cloudyard_delivery_attempts_total',
    'Attempts to deliver a notification, by channel and outcome',
    'channel',
    'outcome',
  );
  return {
    observeTask({ type, state, seconds }: { type: string; state: string; seconds: number }) {
      tasks.labels(type, state).observe(seconds);
    },
    countDriverError: (resource: string, shortage: boolean) =>
      driverErrors.inc({ resource, shortage: String(shortage) }),
    countDelivery: (channel: string, outcome: string) => deliveries.inc({ channel, outcome }),
    countJobEnd: (end: object) => jobsEnded.inc({ outcome: 'done' in end ? 'done' : 'again' }),
    countMissedRuns(late: number, skipped: number) {
      missedRuns.inc({ kind: 'late' }, late);
      missedRuns.inc({ kind: 'skipped' }, skipped);
    },
  };
}

/** Jobs and connections. */
function databaseMetrics(define: Define) {
  const pools = new Map<string, Db['$client']>();
  return {
    /** Adds a pool to the gauges of connections. */
    watchDatabase(name: string, db: Db) {
      pools.set(name, db.$client);
      if (pools.size > 1) return;
      define.gauges(
        'cloudyard_database_connections',
        'Connections of this server, by state; `waiting` counts requests for a connection',
        ['pool', 'state'],
        () =>
          [...pools].flatMap(([pool, { totalCount, idleCount, waitingCount }]): LabelledValue[] => [
            [{ pool, state: 'busy' }, totalCount - idleCount],
            [{ pool, state: 'idle' }, idleCount],
            [{ pool, state: 'waiting' }, waitingCount],
          ]),
      );
    },
    /** Adds the gauges of jobs; `count` is called at each scrape. */
    watchQueue(count: () => Promise<QueueCounts>) {
      // Without the database the gauges are absent: the other metrics are needed most then.
      const counts = joined(() => count().catch(() => null));
      define.sharedGauges('cloudyard_queue_jobs', 'Jobs in the queue, by state', ['state'], async () => {
        const { oldestSeconds: _, ...states } = (await counts()) ?? {};
        return byState(states);
      });
      define.sharedGauge(
        'cloudyard_queue_oldest_job_seconds',
        'How long the oldest ready job has been waiting',
        async () => (await counts())?.oldestSeconds ?? unknown(),
      );
    },
  };
}

/** Of a server. The functions that these and the following ones take are called at each scrape. */
function serverMetrics(define: Define) {
  return {
    /** Adds the gauges of the certificate of HTTPS. */
    watchCertificate(status: () => CertificateStatus) {
      define.sharedGauge(
        'cloudyard_tls_certificate_expiry_seconds',
        'When the certificate of HTTPS expires, in seconds since 1970',
        () => Number(status().expiresAt ?? Number.NaN) / 1000,
      );
      define.sharedGauge(
        'cloudyard_tls_certificate_faults',
        '1 if the certificate of HTTPS has expired or a new one cannot be used, otherwise 0',
        () => Number(!status().healthy),
      );
    },
    /** Adds the gauges of API keys in memory and of their age. */
    watchApiKeys(state: () => { keys: number; ageSeconds: number }) {
      const age = 'Age of the API keys in memory; it grows while the database is away';
      define.sharedGauge('cloudyard_api_keys', 'API keys in the memory of authorize', () => state().keys);
      define.sharedGauge('cloudyard_api_keys_age_seconds', age, () => state().ageSeconds);
    },
  };
}

/** Of hosts and their programs. */
function hostMetrics(define: Define) {
  return {
    /** Adds the gauge of the data directory. */
    watchDisk(read: () => DiskSpace) {
      define.gauges(
        'cloudyard_data_directory_bytes',
        'Bytes of the filesystem of the data directory: total, free, and the reserve below which creates are refused',
        ['kind'],
        async () => {
          const { totalBytes: total, freeBytes: free, reserveBytes: reserve } = read();
          return Object.entries({ total, free, reserve }).map(([kind, value]) => [{ kind }, value]);
        },
      );
    },
    /** Adds the counter of proxy changes. */
    watchLoadBalancers(counters: () => { reloads: number; runtimeChanges: number }) {
      new Counter({
        name: 'cloudyard_load_balancer_changes_total',
        help: 'Changes of the proxy, by method: with a reload, or at run time',
        labelNames: ['how'],
        registers: define.registers,
        collect() {
          const { reloads, runtimeChanges } = counters();
          this.reset();
          this.inc({ how: 'reload' }, reloads);
          this.inc({ how: 'runtime' }, runtimeChanges);
        },
      });
    },
    /** Adds the gauges of the hosts of regions that have several. */
    watchHosts(
      read: () => Promise<{ regionId: number; name: string; leaseSeconds: number; pendingChanges: number }[]>,
    ) {
      const hosts = joined(read);
      const gauge = (name: string, help: string, value: (host: Awaited<ReturnType<typeof read>>[number]) => number) =>
        define.sharedGauges(name, help, ['region', 'host'], async () => {
          const all = await hosts().catch(() => []);
          return all.map((host) => [{ region: String(host.regionId), host: host.name }, value(host)]);
        });
      gauge(
        'cloudyard_host_lease_seconds',
        'Seconds until the lease of a host ends; negative: it has ended',
        ({ leaseSeconds }) => leaseSeconds,
      );
      gauge(
        'cloudyard_host_pending_changes',
        'Published states that a host has not applied',
        ({ pendingChanges }) => pendingChanges,
      );
    },
  };
}

/** Of what is done on a schedule. */
function scheduleMetrics(define: Define) {
  return {
    /** Adds the gauges of schedules. */
    watchSchedules(latenessSeconds: () => Promise<number>, countLate: () => Promise<number>) {
      define.sharedGauge(
        'cloudyard_schedules_late',
        'Schedules that have been waiting for their run for longer than CLOUDYARD_SCHEDULE_LATE_SECONDS',
        () => countLate().catch(unknown),
      );
      define.sharedGauge(
        'cloudyard_schedule_lateness_seconds',
        'How long the most overdue schedule has been waiting for its run',
        () => latenessSeconds().catch(unknown),
      );
    },
    /** Adds the gauges of scheduled backups. */
    watchBackups(read: () => Promise<{ lastSuccessSeconds: number; lateSeconds: number; hasFailed: boolean }>) {
      const gauge = (name: string, help: string, value: (state: Awaited<ReturnType<typeof read>>) => number) =>
        define.sharedGauge(name, help, () => read().then(value).catch(unknown));
      gauge(
        'cloudyard_backup_last_success_timestamp_seconds',
        'When the last scheduled backup that succeeded ended; 0: none',
        ({ lastSuccessSeconds }) => lastSuccessSeconds,
      );
      gauge(
        'cloudyard_backup_late_seconds',
        'How long a scheduled backup has been due',
        ({ lateSeconds }) => lateSeconds,
      );
      gauge('cloudyard_backup_last_failed', '1 if the last scheduled backup failed', ({ hasFailed }) =>
        Number(hasFailed),
      );
    },
  };
}
