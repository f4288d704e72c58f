import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../http/app.ts';
import type { Settings } from '../platform/settings.ts';

/** A previous process that was just killed may still hold the port. */
const busyPortTimeoutMs = 5000;
const otherPorts = 20;

/**
 * Listens, and returns the URL. Waits for a port that CLOUDYARD_PORT sets; otherwise takes the next free port.
 * @throws when the port stays busy
 */
export async function listen(app: App, settings: Settings, serves: boolean): Promise<string> {
  const { host } = settings;
  if (!serves) return app.listen({ host, port: settings.workerPort });
  const deadline = performance.now() + busyPortTimeoutMs;
  for (let port = settings.port; ; ) {
    try {
      return await app.listen({ host, port });
    } catch (error) {
      if ((error as { code?: string }).code !== 'EADDRINUSE') throw error;
      if (!settings.portIsFixed && port < settings.port + otherPorts) port += 1;
      else if (performance.now() > deadline) {
        throw new Error(`port ${port} on ${host} is in use by another program; set CLOUDYARD_PORT to a free one`, {
          cause: error,
        });
      } else await sleep(200);
    }
  }
}
