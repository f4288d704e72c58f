import { silentLogger } from '../platform/log.ts';
import { createMetrics } from '../platform/metrics.ts';
import { createApp } from '../http/app.ts';
import type { AppOptions } from '../http/app.ts';
import { systemRoutes } from '../http/system.ts';
import { resourceRoutes } from '../resources/list.ts';
import type { ResourceServices } from '../resources/list.ts';

/** The OpenAPI document of the routes, made without a database: no handler runs. */
export async function openApiDocument(): Promise<unknown> {
  const unused = new Proxy({}, { get: () => undefined });
  const routes = [systemRoutes(unused as never), ...resourceRoutes(services(unused))];
  const app = await createApp({ log: silentLogger, metrics: createMetrics(), routes } as unknown as AppOptions);
  await app.ready();
  const document = app.swagger();
  await app.close();
  return document;
}

/** Routes take their service apart only when they are called. They include those of development mode. */
function services(unused: object): ResourceServices {
  return new Proxy({}, { get: () => unused }) as ResourceServices;
}
