/**
 * The nginx of this data directory, for UDP listeners only; the first of them starts it. Every change is a new configuration,
 * checked by `nginx -t`, and a graceful reload: sockets stay open, so no datagram is rejected.
 *
 * Failure modes: if nginx rejects a configuration or a port, the call fails and nginx keeps the previous configuration, also
 * when it starts again.
 * While nginx is down, its next start uses the configuration on disk, without the load balancers whose ports another program
 * has taken meanwhile: nginx starts with all of its ports or not at all. They are served again by a later `update`.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import { liveProcess, standardErrorOf } from '../../platform/running-processes.ts';
import { onHost, run } from '../command.ts';
import { accountFor, confined } from '../confined.ts';
import { readFrom } from '../daemon-logs.ts';
import { cannotListen, rejectedConfiguration, proxyUnavailable } from '../haproxy/errors.ts';
import { type Layout, makeRuntimeFolders } from '../haproxy/layout.ts';
import type { Spec } from '../haproxy/specs.ts';
import { addressesOf } from '../load-balancer.ts';
import {
  accessLog,
  errorLog,
  maxSessions,
  ownPid,
  type NginxSettings,
  renderNginx,
  udpListeners,
  type MemberVerdict,
} from './configuration.ts';
import { createSessionCounters } from './session-counters.ts';
import { endOrphans } from './orphaned-workers.ts';

interface NginxOptions {
  layout: Layout;
  program: string;
  streamModule: string;
  log: Logger;
}

/** Ports below 1024. */
const CAPABILITIES = ['net_bind_service'];
const RELOAD_TIMEOUT_MS = 10_000;
const POLL_MS = 5;

/** Starts or adopts nginx with the first `update` that has a UDP listener, or whose predecessor had one. */
export function createNginx(options: NginxOptions) {
  const { layout, program, log } = options;
  const settings: NginxSettings = { ...options, sessions: maxSessions(), state: layout.nginxState };
  const file = join(layout.nginxConfiguration, 'nginx.conf');
  const counters = createSessionCounters(accessLog(layout.nginxState));
  let daemon: Daemon | null = null;
  let running = '';
  let listening = new Set<string>();
  let listeners: string[] = [];
  let wanted: { specs: Spec[]; verdict: MemberVerdict } = { specs: [], verdict: () => true };
  const { excluded, exclude, includeFree } = createExclusions(log);
  const served = () => wanted.specs.filter(({ id }) => !excluded.has(id));
  const render = () => renderNginx(settings, served(), wanted.verdict);

  /**
   * Before a start of nginx, when none of its ports is its own. Something may have removed the configuration. If what is wanted is
   * rejected, as its `update` was, nginx starts with the file on disk.
   */
  const prepareStart = async () => {
    makeRuntimeFolders(layout);
    await exclude(served());
    const found = await readFile(file, 'utf8').catch(() => null);
    running = await replaced(found, render());
  };

  /** Replaces the file, and returns what is on disk then. */
  const replaced = async (found: string | null, text: string): Promise<string> => {
    if (found === text) return text;
    try {
      await checkAndWrite(program, file, text);
      return text;
    } catch (err) {
      // The file on disk has the ports of those that are excluded.
      if (found === null || excluded.size > 0) throw err;
      log.error({ err }, 'nginx starts with its previous configuration');
      return found;
    }
  };

  /** Makes nginx serve these specs. Returns whether anything changed. @throws DriverError */
  async function update(specs: Spec[], verdict: MemberVerdict): Promise<boolean> {
    wanted = { specs, verdict };
    makeRuntimeFolders(layout);
    await includeFree(specs);
    const text = render();
    const endpoints = specs.flatMap(endpointsOf);
    if (!daemon && endpoints.length === 0 && !existsSync(join(layout.nginx, 'nginx.pid'))) return false;
    if (daemon && text === running) return false;
    await checkAndWrite(program, file, text);
    if (daemon) {
      await reload(daemon, errorLog(layout.nginx));
      running = text;
    } else {
      const same = text === (await readFile(`${file}.running`, 'utf8').catch(() => ''));
      // Before the start, which may write another one.
      running = text;
      daemon = await startNginx(options, file, same, prepareStart);
    }
    await writeFile(`${file}.running`, running, { mode: 0o600 });
    listening = new Set(served().flatMap(endpointsOf).map(textOf));
    listeners = specs.flatMap((spec) => udpListeners(spec).map(({ id }) => id));
    log.debug({ listeners: listeners.length }, 'nginx loaded its configuration');
    return true;
  }

  return {
    update,
    /**
     * Checks a spec alone, because all specs share one file.
     * @throws DriverError if nginx rejects the spec or cannot listen on its ports
     */
    async check(spec: Spec): Promise<void> {
      if (udpListeners(spec).length === 0) return;
      makeRuntimeFolders(layout);
      const candidate = `${file}.${spec.id}`;
      const text = renderNginx(settings, [spec], () => true);
      // First: the check of nginx also fails for an address that the host does not have, and does not name it.
      for (const each of endpointsOf(spec)) if (!listening.has(textOf(each))) await tryToBind(each);
      await checkText(program, candidate, text).finally(() => rm(candidate, { force: true }));
    },
    /** The counters of ended sessions by listener id. */
    read: async () => counters.read(listeners),
    /** Whether it has been started and does not run. */
    isDown: () => daemon !== null && daemon.pid() === null,
    /** Load balancers that are not served, because another program had a port of theirs at the start, and why. */
    excluded: (): ReadonlyMap<string, Error> => excluded,
    stop: async () => daemon?.stop(),
    release: async () => daemon?.release(),
  };
}

export type UdpBalancer = ReturnType<typeof createNginx>;

/** The load balancers without nginx, because another program had a port of theirs. */
function createExclusions(log: Logger) {
  /** Why, by id. */
  const excluded = new Map<string, Error>();
  return {
    excluded,
    /** Excludes those whose ports are taken. Call it while nginx does not run, which has them otherwise. */
    async exclude(specs: Spec[]): Promise<void> {
      for (const spec of specs) {
        const error = await unbindable(spec);
        if (error === null) continue;
        excluded.set(spec.id, error);
        log.error({ loadBalancer: spec.id, err: error }, 'excluded the UDP listeners of a load balancer');
      }
    },
    /** Includes those whose ports are free. `specs`: of all load balancers. */
    async includeFree(specs: Spec[]): Promise<void> {
      for (const id of [...excluded.keys()]) {
        const spec = specs.find((each) => each.id === id);
        if (!spec || (await unbindable(spec)) === null) excluded.delete(id);
      }
    },
  };
}

interface Endpoint {
  address: string;
  port: number;
}

function endpointsOf(spec: Spec): Endpoint[] {
  return addressesOf(spec).flatMap((address) => udpListeners(spec).map(({ port }) => ({ address, port })));
}

function textOf({ address, port }: Endpoint): string {
  return `${address} ${port}`;
}

async function checkAndWrite(program: string, file: string, text: string): Promise<void> {
  const candidate = `${file}.candidate`;
  await checkText(program, candidate, text);
  await rename(candidate, file);
}

async function checkText(program: string, candidate: string, text: string): Promise<void> {
  const account = accountFor('nginx');
  await writeFile(candidate, text, { mode: account ? 0o640 : 0o600 });
  if (account) await chown(candidate, 0, account.gid);
  const args = ['-t', '-q', '-p', dirname(candidate), '-e', 'stderr', '-c', candidate];
  const command = confined({ file: program, args }, account, CAPABILITIES);
  await run(command.file, command.args).catch((cause: unknown) => {
    throw rejectedConfiguration('nginx', cause);
  });
}

function startNginx(
  { layout, program, log }: NginxOptions,
  file: string,
  same: boolean,
  prepareStart: () => Promise<void>,
): Promise<Daemon> {
  const folder = layout.nginx;
  const args = ['-p', layout.nginxState, '-e', 'stderr', '-c', file];
  let adopted = true;
  return onHost('cannot start nginx', async () => {
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
      async beforeStart() {
        adopted = false;
        const ended = await endOrphans(errorLog(folder));
        if (ended.length > 0) log.warn({ pids: ended }, 'ended nginx workers without a master');
        await prepareStart();
      },
      log,
    });
    if (adopted && !same) await reload(daemon, errorLog(folder));
    return daemon;
  });
}

/** The log of nginx reports when the new worker listens and when the old worker has stopped listening. */
async function reload(daemon: Daemon, file: string): Promise<void> {
  const pid = daemon.pid();
  if (pid === null) throw proxyUnavailable('nginx is down');
  const log = standardErrorOf(pid, file);
  // The log of a process is gone when the process is.
  const ended = (cause: unknown): never => {
    throw liveProcess(pid) ? cause : proxyUnavailable('nginx is down');
  };
  const { size: from } = await stat(log).catch(ended);
  daemon.signal('SIGHUP');
  const deadline = performance.now() + RELOAD_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const lines = await readFrom(log, from).catch(ended);
    if (/: start worker process \d+\n/.test(lines) && lines.includes('gracefully shutting down')) return;
    const errors = lines.split('\n').filter((line) => line.includes('[emerg]'));
    if (errors.length > 0) throw proxyUnavailable(`nginx rejected its configuration: ${errors.join(' | ')}`);
    await sleep(POLL_MS);
  }
  throw proxyUnavailable('nginx did not load its configuration in time');
}

/** Why nginx could not listen for a load balancer; null: it could. */
const unbindable = async (spec: Spec): Promise<Error | null> => {
  try {
    for (const endpoint of endpointsOf(spec)) await tryToBind(endpoint);
    return null;
  } catch (error) {
    return error as Error;
  }
};

async function tryToBind({ address, port }: Endpoint): Promise<void> {
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  try {
    await once(socket.bind({ address, port, exclusive: true }), 'listening');
  } catch (cause) {
    throw cannotListen(address, `UDP port ${port}`, cause);
  } finally {
    socket.close();
  }
}
