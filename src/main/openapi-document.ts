/** What the operations declare, collected without a database: no handler runs. */
import { aligned } from '../client/output.ts';
import { type AppOptions, createApp } from '../http/create-app.ts';
import type { DeclaredOperation } from '../http/authorization.ts';
import { systemRoutes } from '../http/system.ts';
import { silentLogger } from '../platform/log.ts';
import { createMetrics } from '../platform/metrics.ts';
import { resourceRoutes, type ResourceServices } from '../resources/list.ts';

interface DeclaredApi {
  /** OpenAPI 3.1. */
  document: unknown;
  operations: DeclaredOperation[];
}

/** The API of all resources, those of development mode included. */
export async function declaredApi(): Promise<DeclaredApi> {
  const unused = new Proxy({}, { get: () => undefined });
  // Handlers use their service only when they are called.
  const services = new Proxy({}, { get: () => unused }) as ResourceServices;
  const routes = [systemRoutes(unused as never), ...resourceRoutes(services)];
  const options = { log: silentLogger, metrics: createMetrics(), routes };
  const app = await createApp(options as unknown as AppOptions);
  await app.ready();
  await app.compileShapes();
  const declared = { document: app.swagger(), operations: app.declaredOperations };
  await app.close();
  return declared;
}

/** Lists of texts, numbers, booleans and nulls, with one item a line. */
const simpleLists = /\[\n(?:\s*(?:"(?:[^"\\]|\\.)*"|[\w.+-]+),?\n)+\s*\]/g;

/** The text of openapi.json. Short lists of texts and numbers are on one line. */
export function documentText(document: unknown): string {
  const text = JSON.stringify(document, null, 2).replaceAll(simpleLists, (list) => {
    const items = list.split('\n').slice(1, -1);
    const line = `[${items.map((item) => item.trim()).join(' ')}]`;
    return line.length <= 80 ? line : list;
  });
  return `${text}\n`;
}

/** The text of policy.txt: one line an operation, in the order of the paths. */
export function policyText(operations: DeclaredOperation[]): string {
  const rows = operations
    .map(({ operationId, method, path, access }) => [path, method, operationId, access.reach, access.role])
    .sort((one, other) => (one.join(' ') < other.join(' ') ? -1 : 1))
    .map(([path, method, operationId, reach, role]) => [
      operationId!,
      method!,
      path!.replaceAll(/:(\w+)/g, '{$1}'),
      reach!,
      reach === 'public' ? '-' : role!,
    ]);
  const heading = ['# operation', 'method', 'path', 'reach', 'role'];
  return `${aligned([heading, ...rows]).join('\n')}\n`;
}
