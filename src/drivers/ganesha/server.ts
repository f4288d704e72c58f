/**
 * The one NFS-Ganesha of this data directory: keeps it running, and tells it the whole configuration.
 *
 * `reload` resolves only with what Ganesha itself says is in force (reload-log.ts) after a reload that began after the
 * call; whatever waits together shares one. Ganesha outlives a crash of ours and is adopted, its clients undisturbed,
 * unless it runs with other settings than are asked for now: those (ports, protocols) only count at its start, so they
 * are part of its configuration's file name, and one with another name is ended first.
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
import { DriverError } from '../driver.ts';
import { shared } from '../turns.ts';
import { renderCore, type ServerSettings } from './configuration.ts';
import type { GaneshaPrograms } from './detect.ts';
import { writeDurably } from '../durable-files.ts';
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
  log: Logger;
  /** The text of all exports that are to be, asked for at each reload. */
  renderExports(settings: ServerSettings): string;
  /** Resolves when it is worth it to reload: what is nearly ready is taken along. */
  gather(): Promise<void>;
}

const UP_PATIENCE_MS = 30_000;
const RELOAD_PATIENCE_MS = 10_000;
const LOG_POLL_MS = 3;

export function nfsServer(options: NfsServerOptions): NfsServer {
  const { layout, programs, host, port, mountPort, log } = options;
  const rpcbind = rpcbindFor(programs.rpcbind, layout.ganesha, log);
  const logFile = join(layout.ganesha, 'ganesha.log');
  let settings: ServerSettings = { bindAddress: bindAddress(host), port, mountPort, version3: false };
  let daemon: Daemon | null = null;

  const configurationFile = () => join(layout.ganesha, configurationName(renderCore(settings, layout)));
  const writeConfiguration = () =>
    writeDurably(configurationFile(), `${renderCore(settings, layout)}\n${options.renderExports(settings)}`);
  const answers = () => callNull({ host: reachable(settings.bindAddress), port }, NFS4);

  async function startOnce(): Promise<void> {
    settings = { ...settings, version3: await rpcbind.ensure() };
    await endOtherSettings(layout, configurationFile(), log);
    await writeConfiguration();
    daemon = await startGanesha({ layout, programs, settings, rpcbind, logFile, log, answers }, configurationFile());
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

interface GaneshaStart {
  layout: Layout;
  programs: GaneshaPrograms;
  settings: ServerSettings;
  rpcbind: Rpcbind;
  logFile: string;
  log: Logger;
  answers(): Promise<void>;
}

async function startGanesha(parts: GaneshaStart, configuration: string): Promise<Daemon> {
  const { layout, programs, settings, rpcbind, logFile, log, answers } = parts;
  // Ganesha locks its pid file, so that a second one on this directory exits by itself.
  const pidFile = pidFileOf(layout);
  try {
    return await superviseDaemon({
      name: 'ganesha',
      command: { file: programs.ganesha, args: ['-F', '-f', configuration, '-L', logFile, '-p', pidFile] },
      pidFile,
      readPid: () => readPid(pidFile),
      matches: (commandLine) => runsWith(commandLine, configuration),
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

async function endOtherSettings(layout: Layout, configuration: string, log: Logger): Promise<void> {
  const other = await runningOtherwise(layout, configuration);
  if (other) {
    log.warn({ pid: other.pid }, 'ending an NFS-Ganesha that runs with other settings');
    process.kill(other.pid, 'SIGTERM');
    for (let tries = 0; tries < 200 && isAlive(other); tries += 1) await sleep(50);
    if (isAlive(other)) process.kill(other.pid, 'SIGKILL');
  }
  const old = (await readdir(layout.ganesha)).filter((name) => /^ganesha\..*\.conf/.test(name));
  for (const name of old) if (!configuration.endsWith(`/${name}`)) await rm(join(layout.ganesha, name));
}

async function runningOtherwise(layout: Layout, configuration: string): Promise<LiveProcess | null> {
  const pid = await readPid(pidFileOf(layout));
  const found = pid === null ? null : liveProcess(pid);
  const ours = found?.commandLine.includes(` -p ${pidFileOf(layout)}`) && !runsWith(found.commandLine, configuration);
  return ours ? found : null;
}

function isAlive({ pid, startTime }: LiveProcess): boolean {
  return liveProcess(pid)?.startTime === startTime;
}

function runsWith(commandLine: string, configuration: string): boolean {
  return commandLine.includes('ganesha.nfsd') && commandLine.includes(` -f ${configuration} `);
}

function configurationName(core: string): string {
  return `ganesha.${createHash('sha256').update(core).digest('hex').slice(0, 12)}.conf`;
}

function pidFileOf(layout: Layout): string {
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
