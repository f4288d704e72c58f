/** Opens what every part of a long-running command needs: the configuration, the migrated database and the services. */
import { hostname } from 'node:os';
import { statementTimeout } from '../http/time-limit.ts';
import { createDataDirectory } from '../platform/data-directory.ts';
import type { Db } from '../platform/db.ts';
import type { Keyring } from '../platform/encryption.ts';
import { KeyFileError, openKeyFile } from '../platform/key-file.ts';
import type { Logger } from '../platform/log.ts';
import type { Tracer } from '../platform/tracing/tracer.ts';
import { isServerProcess } from '../platform/server-processes.ts';
import { checkAuthority } from '../resources/registries/token-server/authority.ts';
import { openClock } from './clock.ts';
import { type Configuration, configurationFiles, readConfiguration } from './configuration.ts';
import { findControlPlane } from './control-plane.ts';
import type { Database } from './database.ts';
import { migrateInstallation } from './migration-backup.ts';
import { createServices } from './services.ts';
import type { Settings } from './settings.ts';
import type { ShutdownSteps } from './shutdown.ts';
import { storageOf, withStorage } from './storage.ts';
import { refuseSharedWorker } from './several-hosts.ts';
import { UsageError } from './usage-error.ts';
import { version } from './version.ts';
import { dataDirectoryLock, takeLocks } from './work-locks.ts';

export interface Roles {
  serve: boolean;
  /** The regions to work for; empty: none, `all`: every region in the regions file. */
  work: number[] | 'all';
  /** Whether it is the agent of a host of its region, instead of the worker. */
  agent?: boolean;
}

/** What `openServices` opens, and what every other part is started with. */
export type Opened = Awaited<ReturnType<typeof openServices>>;

/** What the start of a long-running command begins with. */
export interface StartContext {
  settings: Settings;
  roles: Roles;
  log: Logger;
  closing: ShutdownSteps;
  /** The step that closes it has been added to `closing`. */
  opening: Promise<Database>;
}

/**
 * Waits for the database, migrates it, and creates the services. A further process of a server finds it migrated. After an error,
 * the caller runs the steps in `closing`.
 */
export async function openServices({ settings: given, roles, log, closing, opening }: StartContext) {
  const configuration = readConfiguration(configurationFiles(given), log);
  const regionIds = regionsToWorkFor(roles, configuration, configurationFiles(given).regions);
  const settings = withStorage(given, storageOf(configuration.regions, regionIds));
  if (!roles.agent) refuseSharedWorker(regionIds, configuration);
  createDataDirectory(settings.dataDir);
  const database = await opening;
  // A second `start` on a data directory is a mistake and fails here. A second worker is a standby (work.ts).
  const isStart = roles.serve && regionIds.length > 0;
  if (isStart) {
    const lock = await takeLocks(database.connection, [dataDirectoryLock(settings.dataDir)], log);
    closing.push(lock.release);
  }
  if (!isServerProcess) await migrateInstallation(settings, database.connection, (text) => log.info(text));

  const db = database.connect('cloudyard api', settings.databasePoolSize, { statementTimeout });
  const keyring = openKeyFile(settings.keyFile);
  if (!isServerProcess) await requireKeys(db, keyring, settings.keyFile);
  const { clock, movableClock, stop } = await openClock(settings, db, log);
  closing.push(async () => stop());
  const controlPlane = await findControlPlane(settings, log);
  const services = await createServices({
    ...settings,
    ...{ db, clock, movableClock, log, configuration, keyring, controlPlane },
    // A worker serves no sign-in, so it does not need the groups file.
    oidc: roles.serve ? settings.oidc : null,
    webhookAllowPrivate: settings.drivers.webhook.allowPrivate,
  });
  services.metrics.watchDatabase('api', db);
  closing.push(async () => services.caches.stop());
  // Needed even if the server never listens: its connection would keep the database open.
  closing.push(services.apiKeys.stop);
  if (!isServerProcess) await services.clients.bootstrap();
  const tracer = await openTracer(settings, log, closing);
  return {
    ...{ settings, log, closing, configuration, regionIds, database, controlPlane, keyring, services },
    serves: roles.serve,
    isAgent: roles.agent === true,
    /** Whether this is `start`, which owns its data directory. */
    isStart,
    /** Null: no traces. */
    tracer,
  };
}

/**
 * What is encrypted with the key file of another installation is lost when the right one is back. Without any file, a process
 * serves what needs no key.
 */
async function requireKeys(db: Db, keyring: Keyring, keyFile: string): Promise<void> {
  const unusable = keyring.findProblem();
  if (unusable !== null) throw new Error(unusable);
  const { problem } = await checkAuthority(db, keyring);
  if (problem === null || problem instanceof KeyFileError) return;
  throw new Error(
    `${keyFile} is not the key file of this database (docs/guides/encryption-keys.md): ${problem.message}`,
  );
}

/** Null without a collector of traces; the modules are loaded only with one. Adds the step that sends the remaining spans. */
async function openTracer({ tracing }: Settings, log: Logger, closing: ShutdownSteps): Promise<Tracer | null> {
  if (!tracing) return null;
  const { createExporter } = await import('../platform/tracing/exporter.ts');
  const { createTracer } = await import('../platform/tracing/tracer.ts');
  const { endpoint, headers, ratio } = tracing;
  const resource = {
    ...{ 'service.name': 'cloudyard', 'service.version': version },
    ...{ 'host.name': hostname(), 'process.pid': process.pid },
  };
  const exporter = createExporter({ endpoint, headers, resource, log });
  closing.push(exporter.stop);
  return createTracer(exporter.record, ratio);
}

function regionsToWorkFor({ work }: Roles, { regions }: Configuration, file: string): number[] {
  const known = regions.map(({ id }) => id);
  if (work === 'all') return known;
  const unknown = work.filter((id) => !known.includes(id));
  if (unknown.length === 0) return work;
  throw new UsageError(`region ${unknown.join(', ')} is not in ${file}, which has region ${known.join(', ')}`);
}
