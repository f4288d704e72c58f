/**
 * The one nginx of this data directory, for UDP listeners only; started with the first of them. It is told its whole
 * configuration, checked by `nginx -t` before, and reloads gracefully: sockets stay open, so no datagram is refused.
 *
 * How it fails: a configuration or a port that nginx does not take rejects, and it goes on with what it had. While it
 * is down, what is on disk counts at its next start.
 */
import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import { hostError, run } from '../command.ts';
import { accountFor, confined } from '../confined.ts';
import { DriverError } from '../driver.ts';
import type { Layout } from '../haproxy/layout.ts';
import type { Spec } from '../haproxy/specs.ts';
import type { ListenerCounters } from '../load-balancer.ts';
import {
  accessLog,
  errorLog,
  maxSessions,
  ownPid,
  type NginxSettings,
  renderNginx,
  udpListeners,
} from './configuration.ts';
import { udpCounting } from './counting.ts';
import { endOrphans } from './orphans.ts';

export interface UdpBalancer {
  /** Makes nginx serve what these specs want; true when it had to change. @throws DriverError */
  update(specs: Spec[], verdict: (member: string) => boolean | undefined): Promise<boolean>;
  /**
   * @throws DriverError when nginx does not take this spec, or could not listen as it wants. All specs are one file: one
   * that is refused there would be in everybody's way.
   */
  refuseUnusable(spec: Spec): Promise<void>;
  /** By listener; of sessions that have ended. */
  read(): Promise<Map<string, ListenerCounters>>;
  isDown(): boolean;
  stop(): Promise<void>;
  release(): Promise<void>;
}

export interface NginxOptions {
  layout: Layout;
  program: string;
  streamModule: string;
  /** Sessions at once, of all tenants together; what the host affords unless given. */
  sessions?: number;
  log: Logger;
}

/** Ports below 1024. */
const CAPABILITIES = ['net_bind_service'];
const RELOAD_PATIENCE_MS = 10_000;
const POLL_MS = 5;

export function nginxFor(options: NginxOptions): UdpBalancer {
  const { layout, program, log } = options;
  const { sessions = maxSessions() } = options;
  const settings: NginxSettings = { ...options, sessions, state: layout.nginxState };
  const file = join(layout.nginxConfiguration, 'nginx.conf');
  const counting = udpCounting(accessLog(layout.nginxState));
  let daemon: Daemon | null = null;
  let running = '';
  let listening = new Set<string>();
  let listeners: string[] = [];

  async function update(specs: Spec[], verdict: (member: string) => boolean | undefined): Promise<boolean> {
    const text = renderNginx(settings, specs, verdict);
    const wanted = specs.flatMap(endpointsOf);
    if (!daemon && wanted.length === 0 && !existsSync(join(layout.nginx, 'nginx.pid'))) return false;
    if (daemon && text === running) return false;
    await checkAndWrite(program, file, text);
    if (daemon) await reload(daemon, errorLog(layout.nginx));
    else daemon = await startNginx(options, file, text === (await readFile(`${file}.running`, 'utf8').catch(() => '')));
    await writeFile(`${file}.running`, text, { mode: 0o600 });
    running = text;
    listening = new Set(wanted.map(textOf));
    listeners = specs.flatMap((spec) => udpListeners(spec).map(({ id }) => id));
    log.debug({ listeners: listeners.length }, 'nginx has its configuration');
    return true;
  }

  return {
    update,
    async refuseUnusable(spec) {
      if (udpListeners(spec).length === 0) return;
      const candidate = `${file}.${spec.id}`;
      const text = renderNginx(settings, [spec], () => true);
      await check(program, candidate, text).finally(() => rm(candidate, { force: true }));
      for (const each of endpointsOf(spec)) if (!listening.has(textOf(each))) await tryToBind(each);
    },
    read: async () => counting.read(listeners),
    isDown: () => daemon !== null && daemon.pid() === null,
    stop: async () => daemon?.stop(),
    release: async () => daemon?.release(),
  };
}

interface Endpoint {
  address: string;
  port: number;
}

function endpointsOf(spec: Spec): Endpoint[] {
  return udpListeners(spec).map(({ port }) => ({ address: spec.address, port }));
}

function textOf({ address, port }: Endpoint): string {
  return `${address} ${port}`;
}

async function checkAndWrite(program: string, file: string, text: string): Promise<void> {
  const candidate = `${file}.candidate`;
  await check(program, candidate, text);
  await rename(candidate, file);
}

async function check(program: string, candidate: string, text: string): Promise<void> {
  const account = accountFor('nginx');
  await writeFile(candidate, text, { mode: account ? 0o640 : 0o600 });
  if (account) await chown(candidate, 0, account.gid);
  const args = ['-t', '-q', '-p', dirname(candidate), '-e', 'stderr', '-c', candidate];
  const command = confined({ file: program, args }, account, CAPABILITIES);
  try {
    await run(command.file, command.args);
  } catch (cause) {
    throw new DriverError(`nginx does not take the configuration: ${(cause as Error).message}`, {
      customerMessage: 'The load balancer cannot be configured like this.',
      retryable: false,
      cause,
    });
  }
}

async function startNginx({ layout, program, log }: NginxOptions, file: string, same: boolean): Promise<Daemon> {
  const folder = layout.nginx;
  const args = ['-p', layout.nginxState, '-e', 'stderr', '-c', file];
  let adopted = true;
  try {
    const daemon = await superviseDaemon({
      name: 'nginx',
      command: {
        ...confined({ file: program, args }, accountFor('nginx'), CAPABILITIES),
        env: { TMPDIR: layout.nginxState },
      },
      pidFile: join(folder, 'nginx.pid'),
      matches: (commandLine) => commandLine.includes('nginx') && commandLine.includes(` -c ${file}`),
      async probe() {
        const own = await readFile(ownPid(layout.nginxState), 'utf8');
        const pid = await readFile(join(folder, 'nginx.pid'), 'utf8');
        if (own.trim() !== pid.trim()) throw new Error('not started yet');
      },
      startTimeout: 10,
      logFile: errorLog(folder),
      stopSignal: 'SIGTERM',
      async beforeStart() {
        adopted = false;
        const ended = await endOrphans(errorLog(folder));
        if (ended.length > 0) log.warn({ pids: ended }, 'ended nginx workers without a master');
      },
      log,
    });
    if (adopted && !same) await reload(daemon, errorLog(folder));
    return daemon;
  } catch (err) {
    throw hostError(`nginx does not start: ${(err as Error).message}`, err);
  }
}

/** nginx tells in its log when a new worker listens, and when the old one has stopped to. */
async function reload(daemon: Daemon, log: string): Promise<void> {
  const from = (await stat(log)).size;
  if (daemon.pid() === null) throw notTaken('is down');
  daemon.signal('SIGHUP');
  const giveUp = Date.now() + RELOAD_PATIENCE_MS;
  while (Date.now() < giveUp) {
    const said = (await readFile(log)).subarray(from).toString('utf8');
    if (/: start worker process \d+\n/.test(said) && said.includes('gracefully shutting down')) return;
    const trouble = said.split('\n').filter((line) => line.includes('[emerg]'));
    if (trouble.length > 0) throw notTaken(`refused its configuration: ${trouble.join(' | ')}`);
    await sleep(POLL_MS);
  }
  throw notTaken('did not take over its configuration');
}

function notTaken(what: string): DriverError {
  return new DriverError(`nginx ${what}`, {
    customerMessage: 'The load balancer does not answer just now.',
    retryable: true,
  });
}

async function tryToBind({ address, port }: Endpoint): Promise<void> {
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject).bind({ address, port, exclusive: true }, resolve);
    });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DriverError(`nothing can listen on ${address} UDP port ${port}: ${code}`, {
      customerMessage: `The load balancer cannot listen on UDP port ${port} of its address.`,
      retryable: code === 'EADDRINUSE',
      cause,
    });
  } finally {
    socket.close();
  }
}
