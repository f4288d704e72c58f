/**
 * The agent of this host in a region of several hosts: `cloudyard host`. It serves what the worker of the region publishes
 * (hosts/agent.ts). With SIGTERM it keeps its data planes running, as a worker does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startAgent } from '../hosts/agent.ts';
import { diskStatus } from '../platform/disk-space.ts';
import { createListener } from '../platform/listener.ts';
import { addServersAtStart, refreshControlPlane } from './announced-servers.ts';
import { createDriverContext } from './driver-context.ts';
import { openEgress } from './egress.ts';
import { createHostParts } from './host-parts.ts';
import { withOwnRemedy } from './remedy.ts';
import { hostedRegionOf } from './several-hosts.ts';
import { endAsFailed } from './shutdown.ts';
import { version } from './version.ts';
import type { Work, WorkDeps } from './work.ts';
import { dataDirectoryLock, takeLocks } from './work-locks.ts';

const poolSize = 4;
/** How often the egress filter and the control plane are updated. */
const refreshSeconds = 30;
/** How long the start table waits for the drivers. */
const startSeconds = 10;

/** Starts the agent. @throws if the region has one host, or another process uses its data directory or its name */
export async function startHostAgent(deps: WorkDeps): Promise<Work> {
  const { settings, database, log, closing, keyring, regionIds, services } = deps;
  const region = hostedRegionOf(deps);
  if (!region) {
    const id = regionIds[0];
    throw new Error(`region ${id} has no "hosts" in the regions file; run its worker: cloudyard worker --region ${id}`);
  }
  const lock = await takeLocks(database.connection, [dataDirectoryLock(settings.dataDir)], log);
  closing.push(lock.release);
  await protectControlPlane(deps);

  const parts = createHostParts({ settings, region, context: await createDriverContext(deps) }).map((part) => ({
    ...part,
    status: () => withOwnRemedy(part.status()),
  }));
  const db = database.connect('cloudyard agent', poolSize);
  services.metrics.watchDatabase('agent', db);
  services.metrics.watchDisk(() => diskStatus(settings.dataDir, settings.diskReserve));
  const { name, address, interface: device } = settings.agent;
  const agent = await startAgent({
    ...{ db, keyring, log, region, parts, version, dataDir: settings.dataDir },
    ...{ listener: createListener({ db, log }), name, address: address!, interface: device ?? null },
    onFatal(error) {
      log.fatal({ err: error }, 'the agent stops');
      endAsFailed('SIGINT');
    },
  });
  closing.push(agent.stop);
  // A part that cannot start is retried; meanwhile the host does not serve.
  await Promise.race([agent.started, sleep(startSeconds * 1000)]);
  return { standby: false, drivers: Object.fromEntries(parts.map((part) => [part.title, part.status()])) };
}

/** Keeps tenants from the servers of Cloudyard, now and when these change. */
async function protectControlPlane(deps: WorkDeps): Promise<void> {
  const { services, controlPlane, log, closing } = deps;
  await addServersAtStart(deps);
  const egress = await openEgress(deps);
  const refresh = async () => {
    await egress?.apply();
    await refreshControlPlane(controlPlane, services.db);
  };
  const timer = setInterval(() => {
    refresh().catch((error: unknown) => log.warn({ err: error }, 'periodic duty of the agent failed'));
  }, refreshSeconds * 1000);
  closing.push(async () => clearInterval(timer));
}
