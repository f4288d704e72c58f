/** Routes about the server itself: index, health, metrics, the OpenAPI document and its reference page. */
import Fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { everyone } from '../authz/access.ts';
import { ClientError } from '../errors/catalogue.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { App, Routes } from './app.ts';
import { describeServer, Index, indexHeaders, indexPage } from './index-page.ts';

export interface SystemDeps {
  version: string;
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  /** The status of the drivers of all live workers. */
  driverStatus(): Promise<DriverOfWorker[]>;
  metrics: { contentType: string; text(): Promise<string> };
}

export type DriverOfWorker = DriverStatus & { worker: string; region_ids: number[] };

const tags = ['System'];
const Status = Type.Object({ status: Type.String({ description: '`ready`' }) });
const Health = Type.Object({
  status: Type.String({ description: '`ok`' }),
  version: Type.String({ description: 'The version of the server' }),
});
const Driver = Type.Object({
  driver: Type.String({ description: 'The name of the driver: `ganesha`, `simulated`' }),
  kind: Type.Optional(Type.String({ description: 'The kind of driver: `file shares`, `load balancers`' })),
  real: Type.Boolean({ description: 'false: it is simulated' }),
  healthy: Type.Boolean({ description: 'Whether it works at the moment' }),
  detail: Type.String({ description: 'What it does on its host, or why it is simulated' }),
  remedy: Type.Optional(Type.String({ description: 'The command that makes it real, or that fixes it' })),
  worker: Type.String({ description: 'The id of the worker process' }),
  region_ids: Type.Array(Type.Integer(), { description: 'The regions of the worker; empty: deliveries only' }),
});
const Drivers = Type.Object({ drivers: Type.Array(Driver, { description: 'One entry a driver and worker' }) });

export function systemRoutes(deps: SystemDeps): Routes {
  return (app) => {
    const open = (operationId: string, summary: string) => ({ operationId, summary, tags, security: [] });
    const [ping, driverStatus] = [shared(deps.ping), shared(deps.driverStatus)];
    const metricsText = shared(() => deps.metrics.text());
    let document: Buffer | undefined;

    indexRoute(app, deps.version, open('getIndex', 'Get the name, the version and the links of the server'));

    app.get(
      '/healthz',
      { schema: { ...open('getHealth', 'Check liveness'), response: { 200: Health } } },
      async () => ({ status: 'ok', version: deps.version }),
    );

    app.get(
      '/readyz',
      { schema: { ...open('getReadiness', 'Check readiness'), response: { 200: Status } } },
      async () => {
        await ping().catch((cause: unknown) => {
          throw new ClientError('Unavailable', 'the database does not respond', {
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
          ...open('getDriverHealth', 'List drivers and their status'),
          response: { 200: Drivers },
        },
      },
      async () => ({ drivers: await driverStatus() }),
    );

    app.get(
      '/metrics',
      {
        ...counted,
        schema: { ...open('getMetrics', 'Get metrics in the format of Prometheus'), produces: ['text/plain'] },
      },
      async (_request, reply) => {
        reply.type(deps.metrics.contentType);
        return metricsText();
      },
    );

    app.get(
      '/openapi.json',
      { ...counted, schema: open('getOpenApi', 'Get the OpenAPI document') },
      async (_request, reply) => {
        reply.type('application/json; charset=utf-8');
        return (document ??= Buffer.from(JSON.stringify(app.swagger())));
      },
    );

    referencePage(app);
  };
}

const counted = { config: { isCounted: true, access: everyone } };

/** Requests that arrive while the response is being computed share it: these routes are public. */
function shared<T>(compute: () => Promise<T>): () => Promise<T> {
  let computing: Promise<T> | undefined;
  return () => (computing ??= compute().finally(() => (computing = undefined)));
}

function indexRoute(app: App, version: string, schema: object): void {
  const content = {
    'application/json': { schema: Index },
    'text/html': { schema: Type.String({ description: 'If `Accept` contains `text/html`' }) },
  };
  app.get(
    '/',
    { schema: { ...schema, response: { 200: { description: 'What this server is', content } } } },
    async (request, reply) => {
      reply.headers({ ...indexHeaders, vary: 'accept' });
      const server = describeServer(version);
      if (!request.headers.accept?.includes('text/html')) return server;
      reply.type('text/html; charset=utf-8');
      return indexPage(server);
    },
  );
}

type PageAnswer = Pick<Awaited<ReturnType<FastifyInstance['inject']>>, 'statusCode' | 'headers' | 'rawPayload'>;

/**
 * The reference page takes 26 MB of memory, so its module is loaded at the first request, in an app of its own: routes
 * cannot be added to an app that listens.
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
  // Cached: its script is 4 MB, and slow clients share one copy.
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
