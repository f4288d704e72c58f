/** One of several processes that serve the API: see api-processes.ts. The first process stops it, and signals do not. */
import type { App } from '../http/app.ts';
import { defaultAnonymousLimits } from '../http/anonymous-limit.ts';
import { type Lease, leaseRates } from '../http/request-rate.ts';
import { createLogger } from '../platform/log.ts';
import { openCalls } from '../platform/process-calls.ts';
import { apiSettings, closeApi, createApi } from './api.ts';
import { openCertificate } from './certificate.ts';
import { beginDatabase } from './database.ts';
import { listen } from './listen.ts';
import { openServices } from './open-services.ts';
import { compactHeapAfterStartup } from './compact-heap.ts';
import type { Settings } from './settings.ts';
import { close, type ShutdownSteps } from './shutdown.ts';

/** Runs until the first process stops it. @throws if it cannot start */
export async function runApiProcess(given: Settings): Promise<void> {
  // A signal to the process group or to the service, and the end of a terminal, reach every process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const settings = partOf(given);
  const log = createLogger({ level: settings.logLevel, pretty: settings.logFormat === 'pretty' });
  const closing: ShutdownSteps = [];
  const opening = beginDatabase(settings, log, closing, { isSupervised: true });
  const opened = await openServices({ settings, roles: { serve: true, work: [] }, log, closing, opening });
  const { services, controlPlane, tracer } = opened;
  const { metrics } = services;
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  let api: App | undefined;
  const first = openCalls(process, {
    // Before the app exists this has no effect, and the first process calls again when it listens.
    admitRequests: () => api?.admitRequests(),
    metrics: metrics.json,
    ping: () => {},
    stopListening: () => api?.drain.stopListening(),
    stop: async () => {
      if (api) await closeApi(api, services);
      stop();
    },
  });
  api = await createApi(services, {
    ...apiSettings(settings, true),
    ...{ log, tracer, certificate: await openCertificate(opened) },
    anonymousLimits: dividedBy(given.processes, defaultAnonymousLimits),
    rates: leaseRates((request) => first.call<Lease>('lease', request)),
    metrics: { contentType: metrics.contentType, text: () => first.call<string>('metrics') },
  });
  metrics.watchApiKeys(services.apiKeys.cacheState);
  const url = await listen(api, settings, true);
  await controlPlane.add('API', url);
  await first.call('listening', url);
  compactHeapAfterStartup();
  await stopped;
  await close(closing, 'stop', log);
}

const minPoolSize = 4;

/** The share of this process in the limits of its server. Request rates are leased, not divided. */
function partOf(settings: Settings): Settings {
  const { processes, clientLimits, databasePoolSize } = settings;
  const { openRequests, openWaits, eventStreams } = clientLimits;
  return {
    ...settings,
    databasePoolSize: Math.max(Math.min(minPoolSize, databasePoolSize), Math.ceil(databasePoolSize / processes)),
    clientLimits: { ...clientLimits, ...dividedBy(processes, { openRequests, openWaits, eventStreams }) },
  };
}

function dividedBy<Limits extends Record<keyof Limits, number>>(parts: number, limits: Limits): Limits {
  const divided = Object.entries<number>(limits).map(([name, limit]) => [name, Math.ceil(limit / parts)]);
  return Object.fromEntries(divided) as Limits;
}
