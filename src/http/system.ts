/** Operations about the server itself: index, health, metrics and the OpenAPI document. */
import { type Static, Type } from 'typebox';
import { everyone } from '../authz/access.ts';
import { unavailable } from '../errors/catalogue.ts';
import { withZone } from '../platform/clock.ts';
import type { CertificateStatus } from '../platform/tls/certificate.ts';
import { joined } from '../platform/turns.ts';
import { within } from '../platform/within.ts';
import { consoleRoutes } from './console.ts';
import type { App, Routes } from './app.ts';
import { describeServer, Index, indexHeaders, indexPage } from './index-page.ts';
import { operationsOf } from './operations.ts';
import { referencePage } from './reference-page.ts';
import { Component, DateTime, Described, Nullable } from './shapes.ts';
import { sendContent, storeContent, type StoredContent } from './stored-content.ts';

export interface SystemDeps {
  version: string;
  /** The folder of the built console; absent: it is not served. */
  consoleFolder?: string | undefined;
  /** Resolves with null, or with the reason why requests fail. @throws if the database does not respond */
  findObstacle(): Promise<string | null>;
  /** The status of the drivers of all live workers, and the time zones that they know. */
  driverStatus(): Promise<StatusOfWorkers>;
  metrics: { contentType: string; text(): Promise<string> };
  /** The certificate of HTTPS; absent: plain HTTP. */
  tlsStatus?: (() => CertificateStatus) | undefined;
}

const Readiness = Component('Readiness', { status: Type.String({ description: '`ready`' }) });
const Tls = Component('TlsStatus', {
  healthy: Type.Boolean({ description: 'false: the certificate has expired, or a new one cannot be used' }),
  detail: Type.String({ description: 'The names of the certificate, or its problem' }),
  expires_at: Described(Nullable(DateTime), 'When the certificate expires; null: there is none yet'),
});
const Health = Component('Health', {
  status: Type.String({ description: '`ok`' }),
  version: Type.String({ description: 'The version of the server' }),
  tls: Type.Optional(Described(Tls, 'The certificate of this server, if it serves HTTPS')),
});
const ofWorker = {
  worker: Type.String({ description: 'The ID of the worker process' }),
  region_ids: Type.Array(Type.Integer(), { description: 'The regions of the worker; empty: deliveries only' }),
};
const Driver = Component('DriverStatus', {
  driver: Type.String({ description: 'The name of the driver: `ganesha`, `simulated`' }),
  kind: Type.Optional(Type.String({ description: 'The kind of driver: `file shares`, `load balancers`' })),
  real: Type.Boolean({ description: 'false: it is simulated' }),
  healthy: Type.Boolean({ description: 'Whether it works at the moment' }),
  detail: Type.String({ description: 'Function of the driver on its host, or the reason for the simulation' }),
  remedy: Type.Optional(Type.String({ description: 'Command that fixes the driver or replaces the simulation' })),
  port: Type.Optional(Type.Integer({ description: 'The port that clients of NFS connect to' })),
  ...ofWorker,
});
const TimeZones = Component('TimeZoneStatus', {
  detail: Type.String({
    description: 'Release of the IANA time zone database that schedules follow, and its source',
  }),
  ...ofWorker,
});
const DataDirectory = Component('DataDirectoryStatus', {
  healthy: Type.Boolean({ description: 'false: creates and pushes are refused with 507' }),
  detail: Type.String({ description: 'The folder, its free space and the reserve' }),
  free_bytes: Type.Number({ description: 'Free bytes of its filesystem' }),
  total_bytes: Type.Number({ description: 'Size of its filesystem in bytes' }),
  reserve_bytes: Type.Number({ description: 'The reserve in bytes: `CLOUDYARD_DISK_RESERVE` percent of the size' }),
  ...ofWorker,
});
const Drivers = Component('DriverStatuses', {
  drivers: Type.Array(Driver, { description: 'One entry for each driver of each live worker' }),
  time_zones: Type.Array(TimeZones, { description: 'One entry for each live worker of a region' }),
  data_directories: Type.Array(DataDirectory, { description: 'One entry for each live worker of a region' }),
});
const MetricsText = Type.String({ description: 'One line for each metric, with its help and type' });
const OpenApi = Component('OpenApiDocument', {}, 'OpenAPI 3.1');
export type StatusOfWorkers = Static<typeof Drivers>;

const operation = operationsOf({
  name: 'System',
  description: 'The server itself: health, drivers, metrics and this document. No token is needed.',
});
/** These operations are not free, so the requests of each address are limited. */
const counted = { config: { isCounted: true } };
/** The longest wait for the database. */
const readinessMs = 3000;

export function systemRoutes(deps: SystemDeps): Routes {
  // These routes are public, so requests share what is being computed.
  // While the database is frozen, one check of it waits, and each response takes this time.
  const search = joined(deps.findObstacle);
  const findObstacle = joined(() => within(readinessMs, search));
  const driverStatus = joined(deps.driverStatus);
  const metricsText = joined(() => deps.metrics.text());
  let document: StoredContent | undefined;

  const operations = [
    operation('GET', '/healthz', {
      id: 'getHealth',
      summary: 'Check liveness',
      access: everyone,
      response: Health,
      handle: () => ({ status: 'ok', version: deps.version, ...tlsOf(deps.tlsStatus?.()) }),
    }),
    operation('GET', '/readyz', {
      id: 'getReadiness',
      summary: 'Check readiness',
      description:
        'The server is ready when its database responds within 3 seconds and can write, and its encryption keys are readable; ' +
        'otherwise the status is 503 with the reason.',
      access: everyone,
      response: Readiness,
      handle: async () => {
        const obstacle = await findObstacle().catch((cause: unknown) => {
          throw unavailable('the database does not respond', { cause });
        });
        if (obstacle !== null) throw unavailable(obstacle);
        return { status: 'ready' };
      },
    }),
    operation('GET', '/healthz/drivers', {
      id: 'getDriverHealth',
      summary: 'List drivers and their status',
      access: everyone,
      response: Drivers,
      route: counted,
      handle: driverStatus,
    }),
    operation('GET', '/metrics', {
      id: 'getMetrics',
      summary: 'Get metrics in the format of Prometheus',
      access: everyone,
      response: MetricsText,
      produces: ['text/plain'],
      route: counted,
      handle(_request, reply) {
        reply.type(deps.metrics.contentType);
        return metricsText();
      },
    }),
    operation('GET', '/openapi.json', {
      id: 'getOpenApi',
      summary: 'Get the OpenAPI document',
      access: everyone,
      response: OpenApi,
      route: counted,
      async handle(_request, reply) {
        document ??= await storeContent(Buffer.from(JSON.stringify(reply.server.swagger())));
        return sendContent(reply.request, reply.type('application/json; charset=utf-8'), document);
      },
    }),
  ];

  return (app) => {
    const { version, consoleFolder } = deps;
    indexRoute(app, describeServer(version, consoleFolder !== undefined));
    for (const register of operations) register(app);
    referencePage(app);
    if (consoleFolder) consoleRoutes(consoleFolder)(app);
  };
}

function tlsOf(status: CertificateStatus | undefined): { tls?: Static<typeof Tls> } {
  if (!status) return {};
  const { healthy, detail, expiresAt } = status;
  return { tls: { healthy, detail, expires_at: expiresAt && withZone(expiresAt) } };
}

function indexRoute(app: App, server: ReturnType<typeof describeServer>): void {
  const content = {
    'application/json': { schema: Index },
    'text/html': { schema: Type.String({ description: 'If `Accept` contains `text/html`' }) },
  };
  const schema = {
    operationId: 'getIndex',
    summary: 'Get the name, the version and the links of the server',
    ...{ tags: ['System'], security: [] },
    response: { 200: { description: 'Name, version and links of the server', content } },
  };
  app.get('/', { config: { access: everyone }, schema }, async (request, reply) => {
    reply.headers({ ...indexHeaders, vary: 'accept' });
    if (!request.headers.accept?.includes('text/html')) return server;
    reply.type('text/html; charset=utf-8');
    return indexPage(server);
  });
}
