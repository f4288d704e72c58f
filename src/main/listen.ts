import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../http/app.ts';
import type { Settings } from '../platform/settings.ts';

/** A previous process that was just killed may still hold the port. */
const busyPortTimeoutMs = 5000;
const otherPorts = 20;

/**
 * Listens, and returns the URL. Waits for a port that a setting names; without CLOUDYARD_PORT, the API takes the next free port.
 * @throws when the port stays busy
 */
export async function listen(app: App, settings: Settings, serves: boolean): Promise<string> {
  const { host, port: first, portIsFixed, workerPort } = settings;
  const setting = serves ? 'CLOUDYARD_PORT' : 'CLOUDYARD_WORKER_PORT';
  const deadline = performance.now() + busyPortTimeoutMs;
  for (let port = serves ? first : workerPort; ; ) {
    try {
      return await app.listen({ host, port });
    } catch (error) {
      if ((error as { code?: string }).code !== 'EADDRINUSE') throw error;
      if (serves && !portIsFixed && port < first + otherPorts) port += 1;
      else if (performance.now() > deadline) {
        throw new Error(`port ${port} on ${host} is in use by another program; set ${setting} to a free one`, {
          cause: error,
        });
      } else await sleep(200);
    }
  }
}
