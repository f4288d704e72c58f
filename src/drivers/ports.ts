/** Whether the ports that a driver's programs need are free, and which process has them if they are not. */
import { once } from 'node:events';
import { createServer, type ListenOptions } from 'node:net';
import { resolve, sep } from 'node:path';
import { readExisting, readOrEmpty } from '../platform/read-or-empty.ts';
import { descriptorsOf, pidsOfHost } from '../platform/running-processes.ts';
import { serviceIn } from '../platform/service-manager.ts';
import type { DriverPort } from './kind.ts';
import { isOwnAddress } from './own-host.ts';

interface BusyPort {
  port: number;
  /** The process that has it; null if /proc does not say. */
  pid: number | null;
  detail: string;
  /** A command that starts Cloudyard with a free port, or without the service of the Debian package on this one. */
  remedy: string;
}

/** How often an operation that needs a port of another program is retried. Unit: seconds. */
export const busyPortSeconds = 5;

/** The first port that another program has. A daemon of this data directory keeps its port over restarts of Cloudyard. */
export async function findBusyPort(
  ports: readonly DriverPort[],
  dataDir: string,
  serviceOf = serviceOfProcess,
): Promise<BusyPort | null> {
  for (const { port, host, setting, packageService } of ports) {
    if (setting === undefined || (await isFree(port, host))) continue;
    const holder = holderOf(port);
    if (holder && writesBelow(holder.pid, dataDir)) continue;
    const program = holder ? `${holder.name} (process ${holder.pid})` : 'another program';
    const found = { port, pid: holder?.pid ?? null };
    if (packageService !== undefined && holder && serviceOf(holder.pid) === packageService) {
      const detail = `port ${port} is in use by ${program}, ${packageService} of its Debian package`;
      return { ...found, detail, remedy: `sudo systemctl disable --now ${packageService} && npm start` };
    }
    const remedy = `${setting}=${await freePortLike(port, host)} npm start`;
    return { ...found, detail: `port ${port} is in use by ${program}`, remedy };
  }
  return null;
}

/** Drivers listen on the address of their host if this machine has it, otherwise on all addresses. */
async function isFree(port: number, host?: string): Promise<boolean> {
  return tryToListen(host !== undefined && isOwnAddress(host) ? { port, host } : { port }).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'EADDRINUSE',
  );
}

/** Listens on a TCP port for a moment. @throws the error of the system call, such as EADDRINUSE */
export async function tryToListen(options: ListenOptions): Promise<void> {
  const probe = createServer();
  try {
    await once(probe.listen(options), 'listening');
  } finally {
    await new Promise((closed) => probe.close(closed));
  }
}

async function freePortLike(port: number, host?: string): Promise<number> {
  for (let candidate = port + 10_000; candidate <= 65_535; candidate += 1000) {
    if (await isFree(candidate, host)) return candidate;
  }
  return port < 10_000 ? port + 1 : port - 1;
}

const listening = '0A';

/** The sockets that listen on this TCP port of any address, as /proc names them. */
export function listenersOn(port: number): Set<string> {
  return new Set(
    ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
      readExisting(file)
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local = '', , state]) => state === listening && local.endsWith(`:${hexOf(port)}`))
        .map((fields) => `socket:[${fields[9]}]`),
    ),
  );
}

/** The process that listens on this TCP port, from /proc; null where that does not say, as for processes of other users. */
export function holderOf(port: number): { pid: number; name: string } | null {
  const inodes = listenersOn(port);
  const pid = pidsOfHost().find((each) => descriptorsOf(each).some((target) => inodes.has(target)));
  return pid === undefined ? null : { pid, name: readOrEmpty(`/proc/${pid}/comm`).trim() || 'another program' };
}

const serviceOfProcess = (pid: number) => serviceIn(readOrEmpty(`/proc/${pid}/cgroup`));

/** Daemons of Cloudyard log to files in the data directory (platform/daemon.ts). */
function writesBelow(pid: number, dataDir: string): boolean {
  return descriptorsOf(pid).some((target) => target.startsWith(resolve(dataDir) + sep));
}

function hexOf(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
