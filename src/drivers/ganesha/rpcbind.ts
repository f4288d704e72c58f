/**
 * NFSv3 needs an rpcbind on 127.0.0.1:111. If none responds and the program is installed, Cloudyard runs one and stops it
 * with itself. If that fails, or this host does not know the port of rpcbind, only NFSv4 is served.
 *
 * Measured (Debian 12, rpcbind 1.2.6): `-h 127.0.0.1` crashes it (double free; it adds that address itself), so it gets
 * another loopback address. That keeps UDP, which attackers abuse for amplification, off the network. TCP 111 listens on all
 * addresses, as the packaged service does. It registers nothing for other hosts.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import { processIn, startedWith } from '../../platform/running-processes.ts';
import { succeeds } from '../../platform/succeeds.ts';
import { confined } from '../confined.ts';
import { holderOf, listenersOn } from '../ports.ts';
import { portOfRpcbind } from './detect.ts';
import type { Layout } from './layout.ts';
import { callNull, PORTMAPPER } from '../rpc.ts';

/** For port 111, and for the change to the account `_rpc`. */
const CAPABILITIES = ['net_bind_service', 'setuid', 'setgid', 'chown'];
const PORT = 111;
const RESPONSE_TIMEOUT_MS = 2000;
const TRIES = 3;
const ARGUMENTS = ['-f', '-w', '-h', '127.0.0.2'];

/** `file`: the program; null: not installed, so only another program's rpcbind is used. */
export function rpcbindFor(
  file: string | null,
  layout: Pick<Layout, 'ganesha' | 'runtime'>,
  log: Logger,
  findPort = portOfRpcbind,
) {
  const folder = layout.ganesha;
  const pidFile = pidFileOf(layout);
  let ours: Daemon | null = null;

  const start = (program: string) =>
    superviseDaemon({
      name: 'rpcbind',
      command: { ...confined({ file: program, args: ARGUMENTS }, null, CAPABILITIES), env: { TMPDIR: folder } },
      pidFile,
      matches: (commandLine, pid) => isOurs(commandLine) && startedWith(pid, 'TMPDIR', folder),
      probe,
      startTimeout: 5,
      logFile: join(folder, 'rpcbind.log'),
      log,
    });
  return {
    /** Starts one if none responds. Returns whether one responds. */
    async ensure(): Promise<boolean> {
      if (ours) return responds(RESPONSE_TIMEOUT_MS);
      if (findPort() === null) {
        log.warn('/etc/services does not have sunrpc (Debian package netbase); serving NFSv4 only');
        return false;
      }
      for (let tries = 0; tries < TRIES; tries += 1) {
        if (!runsFrom(pidFile, folder) && (await respondsOrIsFree())) return true;
        if (!file) return false;
        try {
          const started = await start(file);
          // Two that start at the same time both run, and only one has the port.
          if (isPortOf(started)) ours = started;
          else await started.stop();
          if (ours || (await responds(0))) return true;
        } catch (err) {
          if (await responds(RESPONSE_TIMEOUT_MS)) return true;
          log.warn({ err }, 'rpcbind does not start; serving NFSv4 only');
          return false;
        }
      }
      return false;
    },
    stop: async () => ours?.stop(),
    release: async () => ours?.release(),
  };
}

export type Rpcbind = ReturnType<typeof rpcbindFor>;

/** Not on the disk of the shares, which may be full. Version 0.2.0 wrote it beside the log. */
function pidFileOf({ ganesha, runtime }: Pick<Layout, 'ganesha' | 'runtime'>): string {
  const previous = join(ganesha, 'rpcbind.pid');
  return existsSync(previous) ? previous : join(runtime, 'rpcbind.pid');
}

const probe = () => callNull({ host: '127.0.0.1', port: PORT }, PORTMAPPER);

async function responds(timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (await succeeds(probe())) return true;
    if (performance.now() >= deadline) return false;
    await sleep(50);
  }
}

/** Returns whether one responds. One that starts or ends has the port and does not: another one would run without it. */
async function respondsOrIsFree(): Promise<boolean> {
  const deadline = performance.now() + RESPONSE_TIMEOUT_MS;
  while (!(await responds(0))) {
    if (listenersOn(PORT).size === 0 || performance.now() >= deadline) return false;
    await sleep(50);
  }
  return true;
}

/** False only if another process is known to have the port. */
function isPortOf(daemon: Daemon): boolean {
  const holder = holderOf(PORT);
  return holder === null || holder.pid === daemon.pid();
}

/** The arguments name no folder: a copy of a data directory has a pid file that names the rpcbind of the original. */
function isOurs(commandLine: string): boolean {
  return commandLine.endsWith(`rpcbind ${ARGUMENTS.join(' ')}`);
}

function runsFrom(pidFile: string, folder: string): boolean {
  const found = processIn(pidFile);
  return found !== null && isOurs(found.commandLine) && startedWith(found.pid, 'TMPDIR', folder);
}
