/** The responses of an installation, to compare it with the one that is restored from its backup. */
import { readFileSync } from 'node:fs';
import { systemClock } from '../src/platform/clock.ts';
import type { ConnectionOptions } from '../src/platform/db.ts';
import { openServer } from './another-server.ts';

/** The bytes of the responses to all GET operations of resources, by path. */
export async function responses(
  connection: ConnectionOptions,
  token: string,
  paths: string[],
): Promise<Record<string, string>> {
  const { app, stop } = await openServer(connection, systemClock);
  const found: Record<string, string> = {};
  for (const url of paths) {
    const response = await app.inject({ method: 'GET', url, headers: { authorization: `apikey ${token}` } });
    // Errors name their request.
    if (response.statusCode === 200) found[url] = response.body;
  }
  await stop();
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
