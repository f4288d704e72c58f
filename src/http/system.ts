/** Routes that are about the server itself: health, metrics, the OpenAPI document and its reference page. */
import Fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { everyone } from '../authz/access.ts';
import { ClientError } from '../errors/catalogue.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { App, Routes } from './app.ts';

export interface SystemDeps {
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  /** What the drivers of all living workers say. */
  driverStatus(): Promise<DriverOfWorker[]>;
  metrics: { contentType: string; text(): Promise<string> };
}

export type DriverOfWorker = DriverStatus & { worker: string; region_ids: number[] };

const tags = ['System'];
const Status = Type.Object({ status: Type.String() });
const Drivers = Type.Object({
  drivers: Type.Array(
    Type.Object({
      driver: Type.String(),
      kind: Type.Optional(Type.String({ description: 'What it makes real: `file shares`, `load balancers`' })),
      real: Type.Boolean({ description: 'false: it only pretends' }),
      healthy: Type.Boolean(),
      detail: Type.String(),
      remedy: Type.Optional(Type.String({ description: 'The one line that would make it real' })),
      worker: Type.String(),
      region_ids: Type.Array(Type.Integer()),
    }),
  ),
});

export function systemRoutes(deps: SystemDeps): Routes {
  return (app) => {
    const open = (operationId: string, summary: string) => ({ operationId, summary, tags, security: [] });
    const [ping, driverStatus] = [shared(deps.ping), shared(deps.driverStatus)];
    const metricsText = shared(() => deps.metrics.text());
    let document: Buffer | undefined;

    app.get(
      '/healthz',
      { schema: { ...open('getHealth', 'Tell whether the process lives'), response: { 200: Status } } },
      async () => ({ status: 'ok' }),
    );

    app.get(
      '/readyz',
      { schema: { ...open('getReadiness', 'Tell whether requests can be served'), response: { 200: Status } } },
      async () => {
        await ping().catch((cause: unknown) => {
          throw new ClientError('Unavailable', 'the database does not answer', {
            headers: { 'retry-after': '1' },
            cause,
          });
        });
        return { status: 'ready' };
      },
    );

    app.get(
      '/healthz/drivers',
      {
        ...counted,
        schema: {
          ...open('getDriverHealth', 'Tell for every driver of every living worker whether it is real'),
          response: { 200: Drivers },
        },
      },
      async () => ({ drivers: await driverStatus() }),
    );

    app.get(
      '/metrics',
      { ...counted, schema: { ...open('getMetrics', 'Metrics for Prometheus'), produces: ['text/plain'] } },
      async (_request, reply) => {
        reply.type(deps.metrics.contentType);
        return metricsText();
      },
    );

    app.get(
      '/openapi.json',
      { ...counted, schema: open('getOpenApi', 'The OpenAPI document') },
      async (_request, reply) => {
        reply.type('application/json; charset=utf-8');
        return (document ??= Buffer.from(JSON.stringify(app.swagger())));
      },
    );

    referencePage(app);
  };
}

const counted = { config: { isCounted: true, access: everyone } };

/** Requests that come while the answer is being made share it: anybody may send any number of them. */
function shared<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => (making ??= make().finally(() => (making = undefined)));
}

type PageAnswer = Pick<Awaited<ReturnType<FastifyInstance['inject']>>, 'statusCode' | 'headers' | 'rawPayload'>;

/**
 * The page's program is 26 MB in memory, so it is loaded by the first who looks at it, in an app of its own: routes
 * cannot be added to one that listens.
 */
function referencePage(app: App): void {
  let opened: Promise<FastifyInstance> | undefined;
  const open = async () => {
    const { default: scalar } = await import('@scalar/fastify-api-reference');
    const page = Fastify();
    await page.register(scalar, {
      routePrefix: '/docs',
      configuration: { url: '/openapi.json', telemetry: false, withDefaultFonts: false },
    } as never);
    return page;
  };
  // Kept, because the program is 4 MB, and clients that read slowly then share it.
  const pages = new Map<string, Promise<PageAnswer>>();
  const load = async (path: string): Promise<PageAnswer> => (await (opened ??= open())).inject({ url: path });
  for (const url of ['/docs', '/docs/*']) {
    app.get(url, { ...counted, schema: { hide: true } }, async (request, reply) => {
      const path = request.url.split('?', 1)[0]!;
      const loading = pages.get(path) ?? load(path);
      pages.set(path, loading);
      const answer = await loading.finally(() => pages.delete(path));
      if (answer.statusCode === 200) pages.set(path, loading);
      const { location, 'content-type': type } = answer.headers;
      reply.code(answer.statusCode);
      if (location) reply.header('location', location);
      if (type) reply.type(String(type));
      return reply.send(answer.rawPayload);
    });
  }
}
