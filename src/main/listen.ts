import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../http/app.ts';
import type { CoreSettings } from '../platform/settings.ts';

/** A previous process that was just killed may still hold the port. */
const busyPortTimeoutMs = 5000;
const otherPorts = 20;
const firstUnprivilegedPort = 1024;

/**
 * Listens, and returns the URL. Waits for a port that a setting names; without CLOUDYARD_PORT, the API takes the next free port.
 * @throws Error that names the setting to change
 */
export async function listen(app: App, settings: CoreSettings, serves: boolean): Promise<string> {
  const { host, port: first, portIsFixed, workerPort } = settings;
  const listenAt = (port: number, setting: string) =>
    listenOnceFree({ host, port, setting }, () => app.listen({ host, port }));
  if (!serves) return listenAt(workerPort, 'CLOUDYARD_WORKER_PORT');
  const last = portIsFixed ? first : first + otherPorts;
  for (let port = first; port < last; port++) {
    try {
      return await app.listen({ host, port });
    } catch (error) {
      if (!isBusy(error)) throw explained(error, { host, port, setting: 'CLOUDYARD_PORT' });
    }
  }
  return listenAt(last, 'CLOUDYARD_PORT');
}

interface Place {
  host: string;
  port: number;
  /** The setting of the port. */
  setting: string;
}

/** Calls `start`, which listens, and calls it again for a while if the port is in use. @throws as `listen` */
export async function listenOnceFree<T>(place: Place, start: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + busyPortTimeoutMs;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw explained(error, place);
      await sleep(200);
    }
  }
}

const codeOf = (error: unknown) => (error as { code?: string }).code ?? '';
const isBusy = (error: unknown) => codeOf(error) === 'EADDRINUSE';

function explained(error: unknown, { host, port, setting }: Place): unknown {
  const at = `port ${port} on ${host}`;
  const unknownHost = `CLOUDYARD_HOST is ${JSON.stringify(host)}; it must be an address of this machine, or a name of one`;
  const isPrivileged = port < firstUnprivilegedPort;
  const messages: Record<string, string> = {
    EADDRINUSE: `${at} is in use by another program; set ${setting} to a free one`,
    EACCES: isPrivileged
      ? `${at} requires the capability CAP_NET_BIND_SERVICE (AmbientCapabilities= of a systemd unit); set ${setting} to a port from ${firstUnprivilegedPort}, or run as root`
      : `this machine does not allow ${at}; set ${setting} to another one`,
    EADDRNOTAVAIL: unknownHost,
    EINVAL: unknownHost,
    ENOTFOUND: unknownHost,
    EAI_AGAIN: `CLOUDYARD_HOST is ${JSON.stringify(host)}, which cannot be resolved at the moment; check the DNS of this machine`,
  };
  const message = messages[codeOf(error)];
  return message === undefined ? error : new Error(message, { cause: error });
}
