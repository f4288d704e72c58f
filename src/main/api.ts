/** The HTTP app over the services. */
import { join } from 'node:path';
import { createApp, type ServerOptions } from '../http/create-app.ts';
import type { App } from '../http/app.ts';
import { type StatusOfWorkers, type SystemDeps, systemRoutes } from '../http/system.ts';
import { createDatabaseHealth } from '../platform/database-health.ts';
import type { Db } from '../platform/db.ts';
import { diskKind } from '../platform/disk-space.ts';
import type { DiskSpace, DriverStatus } from '../platform/driver-status.ts';
import { timeZoneKind } from '../platform/time-zone.ts';
import { statusOf } from '../platform/tls/certificate.ts';
import { authorizeQuickly } from '../resources/api-keys/routes.ts';
import { resourceRoutes } from '../resources/list.ts';
import { seenRecently } from '../tasks/table.ts';
import { root } from '../platform/program-files.ts';
import type { Services } from './services.ts';
import type { Settings } from './settings.ts';
import { version } from './version.ts';

export interface ApiOptions extends ServerOptions {
  /** What /metrics shows; default: the metrics of this process. */
  metrics?: SystemDeps['metrics'];
  /** The folder of the built console; absent: it is not served. */
  consoleFolder?: string | undefined;
  /** False: only health, metrics and the document, as a process that is only a worker shows them. */
  resources?: boolean;
}

/** The options of a server, which listens before it is ready. `serves`: whether it serves more than health and metrics. */
export function apiSettings(settings: Settings, serves: boolean): Omit<ApiOptions, 'log'> {
  const { clientLimits, trustedProxies, publicUrl } = settings;
  const consoleFolder = serves && settings.console ? join(root, 'console', 'dist') : undefined;
  const { hstsSeconds } = settings.tls;
  return { clientLimits, trustedProxies, publicUrl, consoleFolder, hstsSeconds, isHeld: true };
}

/**
 * Creates the app of a server. Its caches are filled when it is ready; closing it stops what it started, but not the
 * services.
 */
export async function createApi(services: Services, options: ApiOptions): Promise<App> {
  const { db, metrics, apiKeys, events } = services;
  const { certificate, resources = true } = options;
  const tlsStatus = certificate && (() => statusOf(certificate, new Date()));
  if (tlsStatus) metrics.watchCertificate(tlsStatus);
  const databaseHealth = createDatabaseHealth(db);
  const app = await createApp({
    ...options,
    poolSize: db.$client.options.max,
    movedNow: services.development ? () => services.clock.now() : undefined,
    quick: resources ? authorizeQuickly(apiKeys) : undefined,
    metrics,
    tokens: services.tokens,
    sessions: services.sessions,
    clientOfProject: services.projects.clientOf,
    regionName: (id) => services.regions.get(id)?.name ?? null,
    db,
    idempotency: services.idempotency,
    onUnavailable: databaseHealth.record,
    routes: [
      systemRoutes({
        version,
        consoleFolder: options.consoleFolder,
        findObstacle: async () => (await databaseHealth.findProblem()) ?? services.findKeyProblem(),
        driverStatus: () => driverStatus(db),
        metrics: options.metrics ?? metrics,
        tlsStatus,
      }),
      ...(resources ? resourceRoutes(services) : []),
    ],
  });
  if (resources) {
    // The caches are filled before the first request arrives.
    app.addHook('onReady', async () => {
      events.start();
      for (const { start } of [services.tokens, services.sessions]) start();
      await apiKeys.start();
    });
    app.addHook('onClose', async () => {
      events.endStreams();
      await Promise.all([events, apiKeys, services.tokens, services.sessions].map(({ stop }) => stop()));
    });
  }
  return app;
}

/** Errors of the host contain them, as in the path of an image. The operator finds them in notifications and in the log. */
const resourceIds = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/** The last report of the drivers of live workers, without IDs of resources: everyone may read it. */
async function driverStatus(db: Db): Promise<StatusOfWorkers> {
  const { rows } = await db.$client.query<{ id: string; region_ids: number[]; drivers: DriverStatus[] }>(
    `select id, region_ids, drivers from workers where ${seenRecently} order by cardinality(region_ids) = 0, id`,
  );
  const all = rows.flatMap(({ id, region_ids, drivers }) => drivers.map((d) => ({ ...d, worker: id, region_ids })));
  const ofKind = (kind: string) => all.filter((one) => one.kind === kind);
  const drivers = all.filter(({ kind }) => kind !== timeZoneKind && kind !== diskKind);
  return {
    drivers: drivers.map((driver) => ({ ...driver, detail: driver.detail.replaceAll(resourceIds, '…') })),
    time_zones: ofKind(timeZoneKind),
    data_directories: (ofKind(diskKind) as (DriverOfWorker & DiskSpace)[]).map(toDataDirectory),
  };
}

type DriverOfWorker = DriverStatus & { worker: string; region_ids: number[] };

function toDataDirectory(status: DriverOfWorker & DiskSpace): StatusOfWorkers['data_directories'][number] {
  const { healthy, detail, freeBytes, totalBytes, reserveBytes, worker, region_ids } = status;
  const bytes = { free_bytes: freeBytes, total_bytes: totalBytes, reserve_bytes: reserveBytes };
  return { healthy, detail, ...bytes, worker, region_ids };
}

/** Answers the requests that were read, and closes the server. If its start has failed, those that it holds get 503. */
export async function closeApi(api: App, services: Services): Promise<void> {
  api.refuseRequests();
  services.taskViews.releaseWaiting();
  services.events.endStreams();
  await api.drain.drain();
  await api.close();
}
