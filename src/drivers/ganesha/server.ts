/**
 * Supervises the NFS-Ganesha of this data directory, and reloads its configuration.
 *
 * `reload` returns the exports that Ganesha confirms in its log (reload-log.ts) after a reload that began after the call;
 * concurrent calls share one. Ganesha outlives a crash of Cloudyard, and the next process adopts it without affecting its
 * clients. Ganesha reads its ports and protocols only when it starts. They determine the name of the configuration file, so
 * that an instance with other settings is recognized and stopped first.
 *
 * Ganesha runs in its own root directory (jail.ts), except when shares are plain folders.
 *
 * Failure modes: if a port is busy, the start fails and names it. While Ganesha is down, `reload` waits for the supervisor to
 * restart it, and fails with a retryable error after 30 s; the configuration is on disk and applies at the next start.
 */
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import { type LiveProcess, liveProcess, processIn, standardErrorOf } from '../../platform/running-processes.ts';
import { succeeds } from '../../platform/succeeds.ts';
import { onHost } from '../command.ts';
import { confined } from '../confined.ts';
import { readFrom, truncateLong } from '../daemon-logs.ts';
import { DriverError } from '../driver.ts';
import { endProcess } from '../end-process.ts';
import { isOwnAddress } from '../own-host.ts';
import { busyPortSeconds, tryToListen } from '../ports.ts';
import { shared } from '../../platform/turns.ts';
import { renderCore, type ServerSettings } from './configuration.ts';
import type { GaneshaPrograms } from './detect.ts';
import { ensureDurably } from '../durable-files.ts';
import type { Jail } from './jail.ts';
import type { Layout } from './layout.ts';
import { type Reload, readReload } from './reload-log.ts';
import { callNull, NFS4 } from '../rpc.ts';
import { keepRegistered } from './registrations.ts';
import { type Rpcbind, rpcbindFor } from './rpcbind.ts';
import { removeStaleRegistrations } from './stale-registrations.ts';

export interface NfsServerOptions extends Pick<ServerSettings, 'port' | 'mountPort' | 'version3'> {
  layout: Layout;
  programs: GaneshaPrograms;
  /** The name or address that clients mount from. */
  host: string;
  /** Null if shares are plain folders. */
  jail: Jail | null;
  log: Logger;
  /** Renders all exports, for each reload. */
  renderExports(settings: ServerSettings): string;
  /** Waits for shares that are nearly ready. */
  awaitPreparation(): Promise<void>;
}

/**
 * Ganesha acts with the user ids of its clients, root included: it opens any file of a share by its handle, sets any owner
 * and mode, and creates device nodes. The ports may be below 1024.
 */
const CAPABILITIES = [
  ...['chown', 'dac_override', 'dac_read_search', 'fowner', 'fsetid', 'setgid', 'setuid'],
  ...['mknod', 'net_bind_service', 'sys_resource'],
];
const START_TIMEOUT_MS = 30_000;
const RELOAD_TIMEOUT_MS = 10_000;
const LOG_POLL_MS = 3;

/** Runs nothing before `start`. */
export function nfsServer(options: NfsServerOptions) {
  const { layout, jail, host, port, mountPort, version3, log } = options;
  const rpcbind = rpcbindFor(options.programs.rpcbind, layout, log);
  let settings: ServerSettings = { bindAddress: bindAddress(host), port, mountPort, version3: false };
  let daemon: Daemon | null = null;
  let endRegistering: () => void = () => undefined;

  let known: Places | null = null;
  /** Not before `start`, when the jail has been prepared. */
  const places = () => (known ??= placesOf(layout, jail));
  const core = () => renderCore(settings, places());
  const configurationName = () => `ganesha.${hash('sha256', core()).slice(0, 12)}.conf`;
  const writeConfiguration = () =>
    ensureDurably(join(places().configuration, configurationName()), `${core()}\n${options.renderExports(settings)}`);
  const probe = () => callNull({ host: reachable(settings.bindAddress), port }, NFS4);

  async function startOnce(): Promise<void> {
    settings = { ...settings, version3: version3 && (await rpcbind.ensure()) };
    const name = configurationName();
    await stopOtherInstances(layout, places(), name, log);
    await writeConfiguration();
    daemon = await startGanesha(options, { places: places(), settings, rpcbind, probe, writeConfiguration }, name);
  }

  return {
    /** Starts Ganesha with all exports, or adopts a running one with the same settings. @throws DriverError */
    async start(): Promise<void> {
      try {
        await startOnce();
      } catch (err) {
        // Another program's rpcbind may have ended while Ganesha registered; then Ganesha exits.
        if (!settings.version3 || isPortBusy(err)) throw err;
        log.warn({ err }, 'NFS-Ganesha does not start; retrying once');
        await startOnce();
      }
      endRegistering = keepRegistered(() => (settings.version3 && daemon?.pid() != null ? settings : null), probe);
    },
    /** @throws DriverError, retryable, if Ganesha does not confirm within 30 s or does not accept its configuration */
    reload: shared(async () => {
      await options.awaitPreparation();
      await jail?.emptyTmp();
      await writeConfiguration();
      const reloaded = await reloadGanesha(() => daemon, probe, layout.logFile);
      log.debug({ exports: reloaded.inForce.size }, 'exports reloaded');
      return reloaded;
    }),
    isUp: () => daemon?.pid() != null,
    /** Whether it is up and does not respond. */
    isSilent: () => daemon?.isSilent() ?? false,
    /** As served: without NFSv3 if no rpcbind responds. */
    settings: () => settings,
    /** Stops Ganesha, and the rpcbind that this process started. */
    async stop(): Promise<void> {
      endRegistering();
      await daemon?.stop();
      await rpcbind.stop();
    },
    /** Leaves Ganesha running for the next process to adopt. */
    async release(): Promise<void> {
      endRegistering();
      await daemon?.release();
      await rpcbind.release();
    },
  };
}

export type NfsServer = ReturnType<typeof nfsServer>;

/** Paths of Ganesha's files, for this process and (`seen…`) as Ganesha sees them. */
interface Places {
  configuration: string;
  seenConfiguration: string;
  pidFile: string;
  seenPidFile: string;
  recovery: string;
}

function placesOf(layout: Layout, jail: Jail | null): Places {
  if (!jail) {
    const { ganesha: folder, pidFile, recovery } = layout;
    return { configuration: folder, seenConfiguration: folder, pidFile, seenPidFile: pidFile, recovery };
  }
  const { configuration, state } = jail.seen;
  return {
    configuration: join(layout.runtime, 'configuration'),
    seenConfiguration: configuration,
    pidFile: join(layout.runtime, 'state', 'ganesha.pid'),
    seenPidFile: join(state, 'ganesha.pid'),
    recovery: join(state, 'recovery'),
  };
}

interface GaneshaStart {
  places: Places;
  settings: ServerSettings;
  rpcbind: Rpcbind;
  probe(): Promise<void>;
  writeConfiguration(): Promise<void>;
}

function startGanesha(
  { layout, jail, programs, log }: NfsServerOptions,
  { places, settings, rpcbind, probe, writeConfiguration }: GaneshaStart,
  configurationName: string,
): Promise<Daemon> {
  const configuration = join(places.seenConfiguration, configurationName);
  // Ganesha locks its pid file, so a second one on this directory exits.
  const args = ['-F', '-f', configuration, '-L', 'STDERR', '-p', places.seenPidFile];
  const command = confined({ file: programs.ganesha, args }, null, CAPABILITIES);
  return onHost('NFS-Ganesha does not start', () =>
    superviseDaemon({
      name: 'ganesha',
      command: { ...(jail ? jail.enter(command) : command), env: { TMPDIR: jail ? '/' : layout.ganesha } },
      pidFile: places.pidFile,
      writesPidFile: true,
      matches: (commandLine) => runsWith(commandLine, places, configurationName),
      probe,
      startTimeout: 20,
      logFile: layout.logFile,
      async beforeStart() {
        // Something may have removed it.
        await writeConfiguration();
        if (settings.version3 && !(await rpcbind.ensure())) throw new Error('rpcbind does not respond');
        if (settings.version3) await removeStaleRegistrations(log);
        for (const port of settings.version3 ? [settings.port, settings.mountPort] : [settings.port]) {
          await refuseBusyPort(port, settings.bindAddress);
        }
      },
      log,
    }),
  );
}

/**
 * Sends SIGHUP after Ganesha responds, because a signal during its start would kill it. If Ganesha dies meanwhile, begins
 * again: the log of a start is not the log of a reload.
 */
export async function reloadGanesha(
  daemon: () => Pick<Daemon, 'pid' | 'signal'> | null,
  probe: () => Promise<void>,
  file: string,
): Promise<Reload> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const pid = daemon()?.pid() ?? null;
    if (pid === null || !(await succeeds(probe()))) {
      await sleep(50);
      continue;
    }
    const logFile = standardErrorOf(pid, file);
    // The log of a process is gone when the process is.
    const unlessEnded = (err: unknown) => {
      if (liveProcess(pid)) throw err;
      return '';
    };
    // Now, because a truncation during a reload would lose its lines.
    const from = await truncateLong(logFile);
    daemon()?.signal('SIGHUP');
    const reloadDeadline = performance.now() + RELOAD_TIMEOUT_MS;
    while (daemon()?.pid() === pid && performance.now() < reloadDeadline) {
      const reloaded = readReload(await readFrom(logFile, from).catch(unlessEnded));
      if (reloaded?.readable) return reloaded;
      if (reloaded) throw notConfirmed(`did not accept its configuration: ${reloaded.errors.join(' | ')}`);
      await sleep(LOG_POLL_MS);
    }
  }
  throw notConfirmed('did not confirm its configuration');
}

function notConfirmed(what: string): DriverError {
  return new DriverError(`NFS-Ganesha ${what}`, {
    customerMessage: 'the file server does not respond',
    retryable: true,
  });
}

async function stopOtherInstances(layout: Layout, places: Places, name: string, log: Logger): Promise<void> {
  for (const other of otherInstances(layout, places, name)) {
    log.warn({ pid: other.pid }, 'stopping an NFS-Ganesha that runs with other settings');
    await endProcess(other);
  }
  for (const folder of new Set([layout.ganesha, places.configuration])) {
    const old = (await readdir(folder)).filter((file) => /^ganesha\..*\.conf/.test(file));
    for (const file of old) if (folder !== places.configuration || file !== name) await rm(join(folder, file));
  }
}

/** Instances on this data directory with other settings, such as one without a jail, of a start that could not mount. */
function otherInstances(layout: Layout, places: Places, name: string): LiveProcess[] {
  const { pidFile } = layout;
  return [...new Set([places.pidFile, pidFile])]
    .map(processIn)
    .filter((found) => found !== null)
    .filter(({ commandLine }) => [places.seenPidFile, pidFile].some((file) => commandLine.includes(` -p ${file}`)))
    .filter(({ commandLine }) => !runsWith(commandLine, places, name));
}

function runsWith(commandLine: string, { seenConfiguration, seenPidFile }: Places, name: string): boolean {
  const ours = ` -f ${join(seenConfiguration, name)} -L STDERR -p ${seenPidFile}`;
  return commandLine.includes('ganesha.nfsd') && commandLine.endsWith(ours);
}

/** `host` if this machine has that address (behind NAT it does not); otherwise all addresses. */
function bindAddress(host: string): string | null {
  // If the machine has only loopback addresses, Ganesha cannot bind any given address, not even a loopback one.
  const outside = Object.values(networkInterfaces()).some((list) => list?.some(({ internal }) => !internal));
  if (!outside) return null;
  if (isOwnAddress(host)) return host;
  return existsSync('/proc/net/if_inet6') ? '::' : '0.0.0.0';
}

function reachable(bound: string | null): string {
  return bound === null || bound === '::' || bound === '0.0.0.0' ? '127.0.0.1' : bound;
}

function isPortBusy(err: unknown): boolean {
  const cause = err instanceof DriverError ? (err.cause as NodeJS.ErrnoException | undefined) : undefined;
  return cause?.code === 'EADDRINUSE';
}

async function refuseBusyPort(port: number, bound: string | null): Promise<void> {
  const address = bound ?? '::';
  await tryToListen({ port, host: address }).catch((cause: unknown) => {
    throw new DriverError(`port ${port} on ${address} is in use by another program, perhaps another NFS server`, {
      customerMessage: `another program of the host uses port ${port} of the file server`,
      retryable: true,
      maxRetrySeconds: busyPortSeconds,
      cause,
    });
  });
}
