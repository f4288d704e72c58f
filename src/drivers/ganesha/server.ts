/**
 * The one NFS-Ganesha of this data directory: keeps it running, and tells it the whole configuration.
 *
 * `reload` resolves only with what Ganesha itself says is in force (reload-log.ts) after a reload that began after the
 * call; whatever waits together shares one. Ganesha outlives a crash of ours and is adopted, its clients undisturbed,
 * unless it runs with other settings than are asked for now: those (ports, protocols) only count at its start, so they
 * are part of its configuration's file name, and one with another name is ended first.
 *
 * It runs in a root directory of its own (jail.ts), except where shares are plain folders.
 *
 * How it fails: a start with a busy port says which. While Ganesha is down, `reload` waits for the supervision to bring
 * it back, and after 30 s gives a retryable error; the configuration is on disk by then and counts at the next start.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, readdir, rm } from 'node:fs/promises';
import { createServer, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Daemon, type LiveProcess, liveProcess, superviseDaemon } from '../../platform/daemon.ts';
import { hostError } from '../command.ts';
import { confined } from '../confined.ts';
import { DriverError } from '../driver.ts';
import { shared } from '../turns.ts';
import { renderCore, type ServerSettings } from './configuration.ts';
import type { GaneshaPrograms } from './detect.ts';
import { writeDurably } from '../durable-files.ts';
import type { Jail } from './jail.ts';
import { type Layout } from './layout.ts';
import { logEnd, type Reload, readFrom, readReload } from './reload-log.ts';
import { callNull, NFS4 } from './rpc.ts';
import { type Rpcbind, rpcbindFor } from './rpcbind.ts';

export interface NfsServer {
  start(): Promise<void>;
  reload(): Promise<Reload>;
  isUp(): boolean;
  settings(): ServerSettings;
  stop(): Promise<void>;
  /** Leaves Ganesha running for the next process to adopt. */
  release(): Promise<void>;
}

export interface NfsServerOptions {
  layout: Layout;
  programs: GaneshaPrograms;
  host: string;
  port: number;
  mountPort: number;
  version3: boolean;
  /** Null where shares are plain folders. */
  jail: Jail | null;
  log: Logger;
  /** The text of all exports that are to be, asked for at each reload. */
  renderExports(settings: ServerSettings): string;
  /** Resolves when it is worth it to reload: what is nearly ready is taken along. */
  gather(): Promise<void>;
}

/**
 * It acts as the users that its clients name, and as root for theirs: any file of a share by its handle, any owner and
 * mode, device nodes and locks as root could make them. The first port may be below 1024.
 */
const CAPABILITIES = [
  ...['chown', 'dac_override', 'dac_read_search', 'fowner', 'fsetid', 'setgid', 'setuid'],
  ...['mknod', 'net_bind_service', 'sys_resource'],
];
const UP_PATIENCE_MS = 30_000;
const RELOAD_PATIENCE_MS = 10_000;
const LOG_POLL_MS = 3;

export function nfsServer(options: NfsServerOptions): NfsServer {
  const { layout, jail, programs, host, port, mountPort, version3, log } = options;
  const rpcbind = rpcbindFor(programs.rpcbind, layout.ganesha, log);
  const logFile = join(layout.ganesha, 'ganesha.log');
  let settings: ServerSettings = { bindAddress: bindAddress(host), port, mountPort, version3: false };
  let daemon: Daemon | null = null;

  let places: Places | null = null;
  const core = () => renderCore(settings, (places ??= placesOf(layout, jail)));
  const configurationName = () => `ganesha.${createHash('sha256').update(core()).digest('hex').slice(0, 12)}.conf`;
  const writeConfiguration = () =>
    writeDurably(join(places!.configuration, configurationName()), `${core()}\n${options.renderExports(settings)}`);
  const answers = () => callNull({ host: reachable(settings.bindAddress), port }, NFS4);

  async function startOnce(): Promise<void> {
    settings = { ...settings, version3: version3 && (await rpcbind.ensure()) };
    const name = configurationName();
    await endOtherSettings(layout, places!, name, log);
    await writeConfiguration();
    const start = { layout, places: places!, jail, programs, settings, rpcbind, logFile, log, answers };
    daemon = await startGanesha(start, name);
  }

  return {
    async start() {
      try {
        await startOnce();
      } catch (err) {
        // Somebody else's rpcbind may have gone while Ganesha registered: it cannot serve NFSv3 then, and exits.
        if (!settings.version3 || isPortBusy(err)) throw err;
        log.warn({ err }, 'NFS-Ganesha does not start, trying once more');
        await startOnce();
      }
    },
    reload: shared(async () => {
      await options.gather();
      await jail?.tidy();
      await writeConfiguration();
      const reloaded = await tellGanesha(() => daemon, answers, logFile);
      log.debug({ exports: reloaded.inForce.size }, 'exports reloaded');
      return reloaded;
    }),
    isUp: () => daemon?.pid() != null,
    settings: () => settings,
    async stop() {
      await daemon?.stop();
      await rpcbind.stop();
    },
    async release() {
      await daemon?.release();
      await rpcbind.release();
    },
  };
}

/** Where files are that Ganesha is given, for this process and (`seen…`) as Ganesha sees them. */
interface Places {
  configuration: string;
  seenConfiguration: string;
  pidFile: string;
  seenPidFile: string;
  recovery: string;
}

function placesOf(layout: Layout, jail: Jail | null): Places {
  const legacy = legacyPidFile(layout);
  if (!jail) {
    const { ganesha: folder, recovery } = layout;
    return { configuration: folder, seenConfiguration: folder, pidFile: legacy, seenPidFile: legacy, recovery };
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
  layout: Layout;
  places: Places;
  jail: Jail | null;
  programs: GaneshaPrograms;
  settings: ServerSettings;
  rpcbind: Rpcbind;
  logFile: string;
  log: Logger;
  answers(): Promise<void>;
}

async function startGanesha(parts: GaneshaStart, configurationName: string): Promise<Daemon> {
  const { layout, places, jail, programs, settings, rpcbind, logFile, log, answers } = parts;
  const configuration = join(places.seenConfiguration, configurationName);
  // Ganesha locks its pid file, so that a second one on this directory exits by itself.
  const args = ['-F', '-f', configuration, '-L', 'STDERR', '-p', places.seenPidFile];
  const command = confined({ file: programs.ganesha, args }, null, CAPABILITIES);
  try {
    return await superviseDaemon({
      name: 'ganesha',
      command: { ...(jail ? jail.enter(command) : command), env: { TMPDIR: jail ? '/' : layout.ganesha } },
      pidFile: places.pidFile,
      readPid: () => readPid(places.pidFile),
      matches: (commandLine) => runsWith(commandLine, places, configurationName),
      probe: answers,
      startTimeout: 20,
      logFile,
      stopSignal: 'SIGTERM',
      async beforeStart() {
        if (settings.version3 && !(await rpcbind.ensure())) throw new Error('rpcbind is gone');
        for (const port of settings.version3 ? [settings.port, settings.mountPort] : [settings.port]) {
          await refuseBusyPort(port, settings.bindAddress);
        }
      },
      log,
    });
  } catch (err) {
    throw hostError(`NFS-Ganesha does not start: ${(err as Error).message}`, err);
  }
}

/**
 * A signal that comes while Ganesha starts would kill it, so it is sent only once Ganesha answers. A death in the middle
 * begins again: the log of a start is not that of a reload.
 */
async function tellGanesha(
  daemon: () => Daemon | null,
  answers: () => Promise<void>,
  logFile: string,
): Promise<Reload> {
  const giveUp = Date.now() + UP_PATIENCE_MS;
  while (Date.now() < giveUp) {
    const pid = daemon()?.pid() ?? null;
    if (
      pid === null ||
      !(await answers().then(
        () => true,
        () => false,
      ))
    ) {
      await sleep(50);
      continue;
    }
    const from = await logEnd(logFile);
    daemon()?.signal('SIGHUP');
    const hurry = Date.now() + RELOAD_PATIENCE_MS;
    while (daemon()?.pid() === pid && Date.now() < hurry) {
      const reloaded = readReload(await readFrom(logFile, from));
      if (reloaded?.readable) return reloaded;
      if (reloaded) throw notConfirmed(`did not understand its configuration: ${reloaded.complaints.join(' | ')}`);
      await sleep(LOG_POLL_MS);
    }
  }
  throw notConfirmed('did not confirm its configuration');
}

function notConfirmed(what: string): DriverError {
  return new DriverError(`NFS-Ganesha ${what}`, {
    customerMessage: 'The file server does not answer just now.',
    retryable: true,
  });
}

async function endOtherSettings(layout: Layout, places: Places, name: string, log: Logger): Promise<void> {
  for (const other of await runningOtherwise(layout, places, name)) {
    log.warn({ pid: other.pid }, 'ending an NFS-Ganesha that runs with other settings');
    process.kill(other.pid, 'SIGTERM');
    for (let tries = 0; tries < 200 && isAlive(other); tries += 1) await sleep(50);
    if (isAlive(other)) process.kill(other.pid, 'SIGKILL');
  }
  for (const folder of new Set([layout.ganesha, places.configuration])) {
    const old = (await readdir(folder)).filter((file) => /^ganesha\..*\.conf/.test(file));
    for (const file of old) if (folder !== places.configuration || file !== name) await rm(join(folder, file));
  }
}

/** Ours on this data directory, also one that an older version started without a root of its own. */
async function runningOtherwise(layout: Layout, places: Places, name: string): Promise<LiveProcess[]> {
  const legacy = legacyPidFile(layout);
  const pids = await Promise.all([...new Set([places.pidFile, legacy])].map(readPid));
  return pids
    .map((pid) => (pid === null ? null : liveProcess(pid)))
    .filter((found) => found !== null)
    .filter(({ commandLine }) => [places.seenPidFile, legacy].some((file) => commandLine.includes(` -p ${file}`)))
    .filter(({ commandLine }) => !runsWith(commandLine, places, name));
}

function isAlive({ pid, startTime }: LiveProcess): boolean {
  return liveProcess(pid)?.startTime === startTime;
}

function runsWith(commandLine: string, { seenConfiguration, seenPidFile }: Places, name: string): boolean {
  const ours = ` -f ${join(seenConfiguration, name)} -L STDERR -p ${seenPidFile}`;
  return commandLine.includes('ganesha.nfsd') && commandLine.endsWith(ours);
}

function legacyPidFile(layout: Layout): string {
  return join(layout.ganesha, 'ganesha.pid');
}

async function readPid(pidFile: string): Promise<number | null> {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  return Number.isSafeInteger(pid) ? pid : null;
}

/** `host` when this machine has that address (behind NAT it has not); otherwise everything, IPv6 too where there is. */
function bindAddress(host: string): string | null {
  // Where there is nothing but loopback, Ganesha finds no address that it is told to bind, not even that one.
  const outside = Object.values(networkInterfaces()).some((list) => list?.some(({ internal }) => !internal));
  if (!outside) return null;
  const local = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  if (isIP(host) && (local.includes(host) || host.startsWith('127.'))) return host;
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
  const probe = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject).listen({ port, host: address }, resolve);
    });
  } catch (cause) {
    throw new DriverError(`port ${port} on ${address} is busy: another program (perhaps another NFS server) has it`, {
      customerMessage: 'The file server does not answer just now.',
      retryable: true,
      cause,
    });
  } finally {
    await new Promise((resolve) => probe.close(resolve));
  }
}
