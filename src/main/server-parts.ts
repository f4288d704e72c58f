/** The parts of the long-running commands: the API server, the worker of a region or the agent of a host, the notifier. */
import type { CertificateSource } from '../platform/tls/certificate.ts';
import { opensLoopback } from '../platform/member-networks.ts';
import { startHostAgent } from './agent.ts';
import { type ApiServer, startApiProcesses } from './api-processes.ts';
import { apiSettings, closeApi, createApi } from './api.ts';
import { openCertificate, openRedirect } from './certificate.ts';
import { compactHeapAfterStartup } from './compact-heap.ts';
import { buildConsole } from './console-build.ts';
import { listen } from './listen.ts';
import { startNotifier } from './notifier.ts';
import { type Opened, openServices, type StartContext } from './open-services.ts';
import { isCheckout } from '../platform/program-files.ts';
import type { Services } from './services.ts';
import type { Settings } from './settings.ts';
import { printStart } from './start-table.ts';
import { startWork } from './work.ts';

/**
 * Starts the API server, the worker or agent, and the notifier, and prints the start table. A service prints no token, because
 * its output is a log that others read.
 */
export async function startParts(context: StartContext, isService: boolean): Promise<void> {
  const opened = await openServices(context);
  const { settings, log, closing, configuration, regionIds, serves, database, services } = opened;
  // Drivers need the port of the API server, which may differ from the setting, so it listens before they start. Requests
  // do not wait for the drivers, whose start may take seconds: their tasks do.
  const opening = openApi(opened);
  const admitting = opening.then(async (api) => {
    const token = await adminToken(services, settings, isService);
    api?.admitRequests();
    return token;
  });
  const startRegion = opened.isAgent ? startHostAgent : startWork;
  const working = regionIds.length > 0 ? startRegion({ ...opened, announced: opening }) : null;
  // Building the API blocks the event loop, for seconds on a slow machine: earlier connections would time out.
  const notifying = opening.then(() => startNotifier({ settings, database, services, log, closing }));
  // Wait for all of them even if one fails, so that every part that was opened has added its shutdown step.
  await Promise.allSettled([admitting, working, notifying]);
  const api = await opening;
  if (api) closing.push(api.stop);
  const [token, work, deliveries] = await Promise.all([admitting, working, notifying]);
  const loopbackRegions = configuration.regions.filter(({ member_networks: allowed }) => opensLoopback({ allowed }));
  printStart({
    ...{ settings, serves, url: api?.url ?? null, token, database: database.description, work, deliveries },
    loopbackRegions: loopbackRegions.map(({ id }) => id),
    isService,
  });
  compactHeapAfterStartup();
  if (serves && settings.console && isCheckout) closing.push(buildConsole(log));
}

const announceSeconds = 3;

/** Listens, and announces the URL to the workers. A process that is only a worker serves health and metrics. */
async function openApi(opened: Opened): Promise<ApiServer | null> {
  const { services, settings, controlPlane, serves, isStart, log, closing } = opened;
  if (!serves && settings.workerPort === 0) return null;
  const several = serves && settings.processes > 1;
  const { promise: challengesAnswered, resolve: answersChallenges } = Promise.withResolvers<void>();
  const certificate = serves ? await openCertificate(opened, challengesAnswered) : undefined;
  const api = several
    ? await startApiProcesses(settings.processes, services.metrics, log)
    : await serveHere(opened, certificate);
  const { url } = api;
  if (serves) {
    await openRedirect(opened, url, certificate).catch(async (error: unknown) => {
      await api.stop();
      throw error;
    });
    answersChallenges();
  }
  await controlPlane.add(serves ? 'API' : 'worker', url);
  if (serves) {
    // A missing key file affects registries only.
    const failed = (error: unknown) => log.error({ err: error }, 'the token server of registries has no keys');
    await services.registries.announce(url, isStart).catch(failed);
    const announce = () => void services.registries.announce(url, false).catch(() => {});
    const timer = setInterval(announce, announceSeconds * 1000);
    closing.push(async () => clearInterval(timer));
  }
  return api;
}

async function serveHere(opened: Opened, certificate: CertificateSource | undefined): Promise<ApiServer> {
  const { services, settings, serves, log, tracer } = opened;
  const api = await createApi(services, {
    ...apiSettings(settings, serves),
    ...{ log, resources: serves, certificate, tracer },
  });
  const stop = () => closeApi(api, services);
  // The app may have opened connections, which would keep the embedded PostgreSQL running.
  const url = await listen(api, settings, serves).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  if (serves) services.metrics.watchApiKeys(services.apiKeys.cacheState);
  return { url, admitRequests: api.admitRequests, stop };
}

/** The token to print: CLOUDYARD_BOOTSTRAP_TOKEN, or a new one at the first start; null if one exists, and for a service. */
async function adminToken(services: Services, settings: Settings, isService: boolean): Promise<string | null> {
  const { operatorId } = await services.clients.bootstrap();
  if (settings.bootstrapToken) await services.tokens.setFixed(settings.bootstrapToken, operatorId);
  if (isService) return null;
  return settings.bootstrapToken ?? services.tokens.createFirst(operatorId);
}
