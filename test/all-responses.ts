/** The responses of an installation, to compare it with the one that is restored from its backup. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createApi } from '../src/main/api.ts';
import { readConfiguration } from '../src/main/configuration.ts';
import { createServices } from '../src/main/services.ts';
import { systemClock } from '../src/platform/clock.ts';
import { connect } from '../src/platform/db.ts';
import type { ConnectionOptions } from '../src/platform/db.ts';
import { createKeyring } from '../src/platform/encryption.ts';
import { silentLogger } from '../src/platform/log.ts';

/** The bytes of the responses to all GET operations of resources, by path. */
export async function responses(
  connection: ConnectionOptions,
  token: string,
  paths: string[],
): Promise<Record<string, string>> {
  const db = connect({ ...connection, log: silentLogger });
  const services = await createServices({
    ...{ db, clock: systemClock, log: silentLogger },
    configuration: readConfiguration({ regions: 'config/regions.yaml', quotas: 'config/quotas.yaml' }, silentLogger),
    keyring: createKeyring([{ id: 'test', key: randomBytes(32) }]),
  });
  const app = await createApi(services, { log: silentLogger });
  const found: Record<string, string> = {};
  for (const url of paths) {
    const response = await app.inject({ method: 'GET', url, headers: { authorization: `apikey ${token}` } });
    // Errors name their request.
    if (response.statusCode === 200) found[url] = response.body;
  }
  await app.close();
  services.caches.stop();
  await db.$client.end();
  return found;
}

/** Without operations that depend on the time or on this process, and events, which do not end. */
const unrelated =
  /healthz|readyz|metrics|docs|openapi|\/dev\/|session|events|authorize|registry_token|forecast|\/usage|traffic|verify/;

/** The paths of all GET operations, with these values of their parameters. */
export function pathsOf(parameters: Record<string, string | number>): string[] {
  const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8')) as { paths: Record<string, object> };
  return Object.entries(paths)
    .filter(([path, operations]) => 'get' in operations && !unrelated.test(path))
    .map(([path]) => path.replace(/\{(\w+)\}/g, (_, name: string) => String(parameters[name] ?? 1)));
}
