/**
 * The metrics that PROMETHEUS listeners serve, named as in HAProxy's own exporter. HAProxy's exporter shows the metrics of all
 * tenants, so it is not used. HAProxy forwards requests to this socket with the id of the load balancer as path.
 *
 * Invariant: the metrics of one tenant take at most a third of the time of this process, because those of 3,000 members are 5 MB, and
 * its API serves all tenants. Requests that wait share the next reading of their load balancer. Clients that do not read their responses
 * hold descriptors and memory of this process, so a tenant has few at a time.
 *
 * Failure modes: while this process is down, HAProxy responds with 503.
 */
import { existsSync } from 'node:fs';
import type { Server } from 'node:http';
import { chmod, chown, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../platform/log.ts';
import { createServer } from '../../platform/node-http.ts';
import { oneAtATime, shared } from '../../platform/turns.ts';
import { accountFor } from '../confined.ts';
import type { Host } from './host.ts';
import { makeRuntimeFolders } from './layout.ts';
import { command } from './quote.ts';
import { listenerName } from './configuration.ts';
import { isMember } from './servers.ts';
import type { Spec } from './specs.ts';
import { rowsOf } from './statistics.ts';

interface Metric {
  name: string;
  help: string;
  type: 'counter' | 'gauge';
  column: string;
}

const gauge = (name: string, column: string, help: string): Metric => ({ name, column, help, type: 'gauge' });
const counter = (name: string, column: string, help: string): Metric => ({ name, column, help, type: 'counter' });

const TRAFFIC: Metric[] = [
  gauge('current_sessions', 'scur', 'Number of current sessions'),
  gauge('max_sessions', 'smax', 'Highest number of sessions'),
  counter('sessions_total', 'stot', 'Total number of sessions'),
  counter('bytes_in_total', 'bin', 'Total number of request bytes'),
  counter('bytes_out_total', 'bout', 'Total number of response bytes'),
];
const RESPONSES = ['1xx', '2xx', '3xx', '4xx', '5xx', 'other'];
const FRONTEND: Metric[] = [
  ...TRAFFIC,
  gauge('limit_sessions', 'slim', 'Limit of sessions'),
  counter('connections_total', 'conn_tot', 'Total number of connections'),
  counter('http_requests_total', 'req_tot', 'Total number of HTTP requests'),
  counter('request_errors_total', 'ereq', 'Total number of invalid requests'),
  counter('requests_denied_total', 'dreq', 'Total number of denied requests'),
];
const BACKEND: Metric[] = [
  ...TRAFFIC,
  gauge('current_queue', 'qcur', 'Number of queued requests'),
  counter('connection_errors_total', 'econ', 'Total number of failed connections'),
  counter('response_errors_total', 'eresp', 'Total number of invalid responses'),
  counter('retry_warnings_total', 'wretr', 'Total number of connection retries'),
  counter('redispatch_warnings_total', 'wredis', 'Total number of redispatches'),
];
const KINDS: Record<string, { prefix: string; metrics: Metric[] }> = {
  '0': { prefix: 'haproxy_frontend', metrics: FRONTEND },
  '1': { prefix: 'haproxy_backend', metrics: [...BACKEND, gauge('active_servers', 'act', 'Number of active servers')] },
  '2': {
    prefix: 'haproxy_server',
    metrics: [
      ...BACKEND,
      gauge('weight', 'weight', 'Weight'),
      counter('check_failures_total', 'chkfail', 'Failed checks'),
    ],
  },
};

/** Open requests of one tenant. */
const MAX_OPEN = 100;

/** Responds with 404 for load balancers that are not served, and with 503 while HAProxy does not respond or the tenant has too many requests. */
export function createExporter(host: Host, log: Logger) {
  const path = host.layout.exporterSocket;
  const metrics = createReadings(host);
  const open = new Map<string, number>();
  /** Whether it was started and not stopped, even if it cannot listen. */
  let wanted = false;
  let server: Server | null = null;

  async function listen(): Promise<void> {
    makeRuntimeFolders(host.layout);
    await rm(path, { force: true });
    const listening = createServer((request, response) => {
      // HAProxy replaces the path, and keeps the query of the client.
      const id = request.url!.slice(1).replace(/\?.*/, '');
      const tenant = host.specs.get(id)?.tenant ?? '';
      const others = open.get(tenant) ?? 0;
      if (others >= MAX_OPEN) return void response.writeHead(503).end();
      open.set(tenant, others + 1);
      response.once('close', () => {
        const left = open.get(tenant)! - 1;
        if (left === 0) open.delete(tenant);
        else open.set(tenant, left);
      });
      metrics(id).then(
        (text) => response.writeHead(text === null ? 404 : 200, { 'content-type': CONTENT_TYPE }).end(text ?? ''),
        (err: unknown) => {
          log.warn({ loadBalancer: id, err }, 'cannot read the metrics of a load balancer');
          response.writeHead(503).end();
        },
      );
    });
    server = listening;
    await new Promise<void>((resolve, reject) => listening.once('error', reject).listen(path, resolve));
    listening.unref();
    await chmod(path, 0o660);
    const account = accountFor('haproxy');
    if (account) await chown(path, 0, account.gid);
  }

  async function close(): Promise<void> {
    const listening = server;
    if (!listening) return;
    listening.closeAllConnections();
    await new Promise((resolve) => listening.close(resolve));
    server = null;
  }

  return {
    /** Listens on the socket of the layout. @throws the error of the system call */
    async start(): Promise<void> {
      wanted = true;
      await listen();
    },
    /** Listens again if something removed the socket. */
    async restore(): Promise<void> {
      if (!wanted || (server?.listening && existsSync(path))) return;
      await close();
      await listen();
      log.warn({ socket: path }, 'the socket of the exporter was removed; created it again');
    },
    async stop(): Promise<void> {
      wanted = false;
      await close();
    },
  };
}

/** How many times as long as a reading the next one of the same tenant waits. */
const PAUSES = 2;

/** Reads the metrics of a load balancer, in turn with the others of its tenant; null: it is not served. */
function createReadings(host: Host): (id: string) => Promise<Buffer | null> {
  const turn = oneAtATime();
  const readings = new WeakMap<Spec, () => Promise<Buffer | null>>();

  const read = ({ id, tenant }: Spec) => {
    const { promise, resolve } = Promise.withResolvers<Buffer | null>();
    void turn(tenant, async () => {
      const begun = performance.now();
      const reading = metricsOf(host, id);
      resolve(reading);
      await reading.catch(() => undefined);
      await sleep((performance.now() - begun) * PAUSES, undefined, { ref: false });
    });
    return promise;
  };
  return async (id) => {
    const spec = host.specs.get(id);
    if (!spec) return null;
    const reading = readings.get(spec) ?? shared(() => read(spec));
    readings.set(spec, reading);
    return reading();
  };
}

const CONTENT_TYPE = 'text/plain; version=0.0.4';

async function metricsOf(host: Host, id: string): Promise<Buffer | null> {
  const rendered = host.rendered.get(id);
  if (!rendered) return null;
  const proxies = [
    ...[...rendered.endpoints.keys()].map(listenerName),
    ...rendered.pools.map(({ backend }) => backend),
  ];
  const csv = await host.process.ask(proxies.map((name) => command('show', 'stat', name, '7', '-1')));
  return Buffer.from(exposition(csv));
}

/** The CSV of `show stat` in the Prometheus text format, grouped by metric. */
export function exposition(csv: string): string {
  const samples = new Map<string, string[]>();
  const put = (head: string, line: string) => {
    const lines = samples.get(head);
    if (lines) lines.push(line);
    else samples.set(head, [line]);
  };
  for (const value of rowsOf(csv)) {
    const kind = KINDS[value('type')];
    const isServer = value('type') === '2';
    if (!kind || (isServer && !isMember(value('svname')))) continue;
    const labels = `proxy="${value('pxname')}"${isServer ? `,server="${value('svname')}"` : ''}`;
    for (const { name, type, help, column } of kind.metrics) {
      if (value(column) === '') continue;
      const full = `${kind.prefix}_${name}`;
      put(`# HELP ${full} ${help}.\n# TYPE ${full} ${type}\n`, `${full}{${labels}} ${value(column)}\n`);
    }
    const responses = `${kind.prefix}_http_responses_total`;
    for (const code of RESPONSES.filter((each) => value(`hrsp_${each}`) !== '')) {
      const head = `# HELP ${responses} Total number of HTTP responses.\n# TYPE ${responses} counter\n`;
      put(head, `${responses}{${labels},code="${code}"} ${value(`hrsp_${code}`)}\n`);
    }
    if (isServer) {
      const up = /^(UP|no check)/.test(value('status')) ? 1 : 0;
      put(
        '# HELP haproxy_server_up Whether the server takes traffic.\n# TYPE haproxy_server_up gauge\n',
        `haproxy_server_up{${labels}} ${up}\n`,
      );
    }
  }
  return [...samples].map(([head, lines]) => head + lines.join('')).join('');
}
