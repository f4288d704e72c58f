/**
 * A complete Cloudyard for one test file: a separate database, a clock that the test controls, the API by `inject`, and a
 * worker with the test's driver. Everything is removed afterwards.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, inject, vi } from 'vitest';
import type { Role } from '../src/authz/actor.ts';
import type { FileShareDriver } from '../src/drivers/file-share.ts';
import type { DeliveryDrivers } from '../src/drivers/kinds.ts';
import type { LoadBalancerDriver } from '../src/drivers/load-balancer.ts';
import type { RegistryDriver } from '../src/drivers/registry.ts';
import { createSimulatedDeliveryDriver } from '../src/drivers/simulated/delivery.ts';
import type { VolumeDriver } from '../src/drivers/volume.ts';
import type { App } from '../src/http/app.ts';
import { createApi } from '../src/main/api.ts';
import { driverStatuses, simulatedDrivers } from '../src/main/drivers.ts';
import { createJobHandlers } from '../src/main/notifier.ts';
import { checkoutPlaces, root } from '../src/platform/program-files.ts';
import { readSettings } from '../src/main/settings.ts';
import { createWork } from '../src/main/work.ts';
import { type Configuration, readConfiguration } from '../src/main/configuration.ts';
import { createServices, type Services, type ServicesDeps } from '../src/main/services.ts';
import { connect, type ConnectionOptions, type Db } from '../src/platform/db.ts';
import { openDevelopmentClock } from '../src/platform/development-clock.ts';
import { createKeyring, type Keyring } from '../src/platform/encryption.ts';
import { type Logger, silentLogger } from '../src/platform/log.ts';
import { type CoreSettings, defaultSettings } from '../src/platform/settings.ts';
import { withClient } from '../src/platform/with-client.ts';
import { createDeliveries } from '../src/resources/notifications/reconcile.ts';
import { startWorker, type Worker } from '../src/tasks/worker.ts';
import { inDatabase, templateDatabase } from './postgres.ts';

export interface CloudyardOptions {
  /** Default: a simulated driver. `null`: no worker runs, so tasks stay NEW. */
  driver?: FileShareDriver | null;
  /** Default: a simulated driver. */
  loadBalancerDriver?: LoadBalancerDriver;
  /** Default: a simulated driver. */
  volumeDriver?: VolumeDriver;
  /** Default: a simulated driver. */
  registryDriver?: RegistryDriver;
  /** Default: simulated drivers. */
  deliveryDrivers?: Partial<DeliveryDrivers>;
  /** Default: 0, so that tests do not wait. */
  notificationWindowSeconds?: number;
  webhookAllowPrivate?: boolean;
  /** Sign-in with OpenID Connect. Default: with tokens only. */
  signIn?: Required<Pick<ServicesDeps, 'oidc' | 'publicUrl'>>;
  configuration?: (shipped: Configuration) => Configuration;
  /** How often the worker polls for lifecycle policies that are due; default: 0.25, as in production. */
  pollSeconds?: number;
  /** Local networks of the host. Default: only loopback, regardless of this machine. */
  localNetworks?: () => string[];
  controlPlane?: ServicesDeps['controlPlane'];
  /** Development mode: its clock replaces the test's. */
  development?: boolean;
  log?: Logger;
  /** Default: with the HAProxy of this machine. */
  checkPattern?: ServicesDeps['checkPattern'];
  /** Default: those of the settings. */
  clientLimits?: Partial<CoreSettings['clientLimits']>;
  /** Default: that of the settings. */
  maxBacklog?: number;
  /** CIDRs of registries that may verify pull secrets. */
  verifyNetworks?: string[];
  /** A migrated database with rows, in place of an empty one. It is dropped at the end. */
  existing?: { database: Awaited<ReturnType<typeof cloneDatabase>>; keyring: Keyring; token: string };
  /** False if the test writes rows or counters directly. Otherwise the harness compares them at the end. */
  audit?: boolean;
}

export interface Answer {
  status: number;
  body: any;
  headers: Record<string, unknown>;
}

/** The paths of the invalid fields of a request; undefined if it was accepted. */
export const errorPaths = ({ body }: Answer) => body.errors?.map(({ path }: { path: string }) => path);

export interface Cloudyard {
  db: Db;
  connection: ConnectionOptions;
  services: Services;
  app: App;
  clock: { now(): Date; set(date: Date | null): void; advance(seconds: number): void };
  /** The operator's admin token. */
  admin: string;
  /** Sends a request. The default `token` is the operator's. */
  request(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  get(path: string, options?: RequestOptions): Promise<Answer>;
  post(path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  patch(path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  delete(path: string, options?: RequestOptions): Promise<Answer>;
  /** Creates a client with a default project, its network and a token. */
  newClient(role?: Role): Promise<{ clientId: number; projectId: number; token: string }>;
  newToken(clientId: number, role: Role, projectIds?: number[] | null, expiresAt?: Date | null): Promise<string>;
  /** Waits for the only task of a response and returns it. */
  ended(answer: Answer, options?: RequestOptions): Promise<Answer>;
  startWorker(driver?: FileShareDriver): Promise<Worker>;
  /** Waits until the frequent duties of the workers have run, so that a test can assert that nothing happened. */
  afterDuties(): Promise<void>;
}

export interface RequestOptions {
  /** null: no Authorization header. */
  token?: string | null;
  headers?: Record<string, string>;
}

/** Call at the top of a test file; use the returned object inside tests only. */
export function useCloudyard(options: CloudyardOptions = {}): Cloudyard {
  const cloudyard = {} as Cloudyard;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const opened = await openCloudyard(inject('postgres'), options);
    Object.assign(cloudyard, opened.cloudyard);
    stop = opened.stop;
  });
  afterAll(() => stop?.());
  return cloudyard;
}

/** Clones a database from the migrated template. */
export async function cloneDatabase(
  server: ConnectionOptions,
): Promise<{ connection: ConnectionOptions; drop(): Promise<void> }> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const asAdmin = (sql: string) => withClient(server, async (admin) => void (await admin.query(sql)));
  // The default, through the write-ahead log, takes 1.3 to 1.6 times the CPU time.
  await asAdmin(`create database ${name} template ${templateDatabase} strategy file_copy`);
  return { connection: inDatabase(server, name), drop: () => asAdmin(`drop database ${name} with (force)`) };
}

export async function openCloudyard(server: ConnectionOptions, options: CloudyardOptions = {}) {
  const { existing } = options;
  const { connection, drop } = existing?.database ?? (await cloneDatabase(server));
  const log = options.log ?? silentLogger;
  const db = connect({ ...connection, poolSize: 10, log });
  const clock = createTestClock();
  const keyring = existing?.keyring ?? createKeyring([{ id: 'test', key: randomBytes(32) }]);
  const configuration = options.configuration?.(shipped) ?? shipped;
  const movableClock = options.development ? await openDevelopmentClock(db) : null;
  const { notificationWindowSeconds = 0, webhookAllowPrivate, verifyNetworks = [] } = options;
  const { localNetworks = () => [], controlPlane } = options;
  const settings = { configuration, keyring, notificationWindowSeconds, webhookAllowPrivate, verifyNetworks };
  const memberSettings = { localNetworks, controlPlane };
  const clientLimits = { ...defaultSettings.clientLimits, ...options.clientLimits };
  const services = await createServices({
    db,
    clock: movableClock ?? clock,
    movableClock,
    log,
    ...settings,
    ...memberSettings,
    ...options.signIn,
    ...(options.checkPattern && { checkPattern: options.checkPattern }),
    clientLimits,
    ...(options.maxBacklog && { maxBacklog: options.maxBacklog }),
  });
  const { operatorId } = await services.clients.bootstrap();
  const admin = existing?.token ?? (await services.tokens.createFirst(operatorId));
  const app = await createApi(services, { log, clientLimits });
  const workers: Worker[] = [];
  const rounds = createRounds();
  const cloudyard = {
    ...requests(app, db, admin!),
    db,
    connection,
    services,
    app,
    clock,
    admin: admin!,
    afterDuties: rounds.next,
    async newClient(role: Role = 'admin') {
      const { clientId, projectId } = await services.clients.create(`client ${randomUUID()}`);
      return { clientId, projectId, token: await cloudyard.newToken(clientId, role) };
    },
    async newToken(clientId, role, projectIds = null, expiresAt = null) {
      const { text } = await services.tokens.create({ clientId, name: 'test', role, projectIds, expiresAt });
      return text;
    },
    async startWorker(fileShare = options.driver) {
      const simulated = simulatedDrivers({ drivers: driverSettings }, { memberRules: services.memberRules });
      const drivers = {
        ...simulated,
        fileShare: fileShare ?? simulated.fileShare,
        loadBalancer: options.loadBalancerDriver ?? simulated.loadBalancer,
        registry: options.registryDriver ?? simulated.registry,
        volume: options.volumeDriver ?? simulated.volume,
      };
      const { receiverOf } = services.webhooks;
      const deliveryDrivers = { ...simulatedDeliveries, ...options.deliveryDrivers };
      const deliveries = createDeliveries({
        db,
        clock,
        log,
        drivers: deliveryDrivers,
        receiverOf,
        onAttempt: services.metrics.countDelivery,
      });
      const regionIds = services.regions.all().map((region) => region.id);
      const work = createWork(
        { ...services, regionIds, sweepSeconds: 1, pollSeconds: options.pollSeconds ?? 0.25, driverSettings },
        drivers,
        services.development,
      );
      const worker = await startWorker({
        pollMs: jobPollMs,
        db,
        log,
        clock: services.clock,
        tasks: services.tasks,
        wakeups: services.wakeups,
        regionIds,
        concurrency: 4,
        sweepSeconds: 1,
        handlers: createJobHandlers(services, deliveries),
        driverStatus: () => Object.values(driverStatuses(drivers)),
        onDriverError: services.metrics.countDriverError,
        onJobEnd: services.metrics.countJobEnd,
        ...work,
        duties: work.duties.map((duty) => rounds.counted(duty)),
      });
      workers.push(worker);
      return worker;
    },
  } as Cloudyard;
  if (options.driver !== null) await cloudyard.startWorker(options.driver);
  return {
    cloudyard,
    async stop() {
      for (const worker of workers) await worker.stop();
      services.taskViews.releaseWaiting();
      await app.close();
      const drifts = options.audit === false ? [] : await services.quotaAudit.find();
      services.caches.stop();
      movableClock?.stop();
      await db.$client.end();
      await drop();
      if (drifts.length > 0) throw new Error(`counters differ from the rows: ${JSON.stringify(drifts)}`);
    },
  };
}

const { drivers: driverSettings } = readSettings(
  { CLOUDYARD_REGISTRY_PATIENCE_SECONDS: '1' },
  checkoutPlaces(root),
  false,
);

/** Of the files in config/; no Cloudyard changes it. */
const shipped = readConfiguration({ regions: 'config/regions.yaml', quotas: 'config/quotas.yaml' }, silentLogger);

const simulatedDeliveries: DeliveryDrivers = {
  email: createSimulatedDeliveryDriver('e-mail', 'in tests', 'none'),
  webhook: createSimulatedDeliveryDriver('webhooks', 'in tests', 'none'),
};

/** Changes that a reader may make. */
const changesOfReaders = ['createSession', 'deleteSession'];

/** Requests that change nothing although they are not GET: operations that a reader or anonymous caller may use. */
function readsOf(app: App): (method: string, path: string) => boolean {
  let reads: { method: string; path: RegExp }[] | undefined;
  const find = () =>
    app.declaredOperations
      .filter(({ access, operationId }) => access.role === 'reader' && !changesOfReaders.includes(operationId))
      .map(({ method, path }) => ({ method, path: new RegExp(`^${path.replace(/:\w+/g, '[^/?]+')}(/|$|\\?)`) }));
  return (method, path) => {
    reads ??= find();
    return reads.some((read) => read.method === method && read.path.test(path));
  };
}

/** Expects one entry in the audit log for each change, and none for refused requests. */
async function expectAudited(db: Db, what: string, mutates: boolean, requestId: unknown): Promise<void> {
  const { rows } = await db.$client.query<{ operation: string }>(
    'select operation from audit_entries where request_id = $1',
    [requestId],
  );
  const expected = mutates ? 1 : 0;
  if (rows.length !== expected) throw new Error(`${what} has ${rows.length} entries in the audit log`);
}

function requests(app: App, db: Db, admin: string) {
  const isRead = readsOf(app);
  const request: Cloudyard['request'] = async (method, path, body, options = {}) => {
    const token = options.token === undefined ? admin : options.token;
    const response = await app.inject({
      method: method as 'GET',
      url: path,
      headers: { ...(token !== null && { authorization: `apikey ${token}` }), ...options.headers },
      ...(body !== undefined && { payload: body as object }),
    });
    // A replayed response has no entry, and an empty request may have one.
    const isRepeated = options.headers?.['idempotency-key'] !== undefined || JSON.stringify(body) === '{}';
    if (method !== 'GET' && method !== 'HEAD' && response.statusCode < 500 && !isRepeated) {
      const mutates = response.statusCode < 300 && !isRead(method, path);
      const what = `${method} ${path} (${response.statusCode})`;
      await expectAudited(db, what, mutates, response.headers['x-request-id']);
    }
    const isJson = String(response.headers['content-type']).startsWith('application/json') && response.body !== '';
    return { status: response.statusCode, body: isJson ? response.json() : response.body, headers: response.headers };
  };
  return {
    request,
    get: (path: string, options?: RequestOptions) => request('GET', path, undefined, options),
    post: (path: string, body?: unknown, options?: RequestOptions) => request('POST', path, body, options),
    patch: (path: string, body?: unknown, options?: RequestOptions) => request('PATCH', path, body, options),
    delete: (path: string, options?: RequestOptions) => request('DELETE', path, undefined, options),
    async ended(answer: Answer, options?: RequestOptions) {
      if (answer.status !== 200 || answer.body.tasks?.length !== 1) {
        throw new Error(`no task in ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      return request('GET', `/cloud/v1/tasks/${answer.body.tasks[0]}?wait=20`, undefined, options);
    },
  };
}

/** A tenth of that of production: tests wait for jobs that are due later. */
const jobPollMs = 100;

const frequentSeconds = 1;

/** Counts how often the frequent duties of all workers have run. */
function createRounds() {
  type Duty = { seconds: number; work(signal: AbortSignal): Promise<unknown> };
  const counts: { runs: number; signal?: AbortSignal }[] = [];
  return {
    counted({ seconds, work }: Duty): Duty {
      const count: (typeof counts)[number] = { runs: 0 };
      if (seconds <= frequentSeconds) counts.push(count);
      return {
        seconds,
        async work(signal) {
          count.signal = signal;
          await work(signal).finally(() => (count.runs += 1));
        },
      };
    },
    /** One run may be under way, so the second one to end began after the call. A stopped worker has no more runs. */
    async next(): Promise<void> {
      const wanted = counts.map((count) => ({ count, runs: count.runs + 2 }));
      const isOver = ({ count, runs }: (typeof wanted)[number]) => count.runs >= runs || count.signal?.aborted === true;
      await vi.waitUntil(() => wanted.every(isOver), { timeout: 50_000, interval: 20 });
    },
  };
}

function createTestClock() {
  let fixed: Date | null = null;
  return {
    now: () => (fixed ? new Date(fixed) : new Date()),
    /** null: the real time. */
    set(date: Date | null) {
      fixed = date;
    },
    advance(seconds: number) {
      fixed = new Date((fixed ?? new Date()).getTime() + seconds * 1000);
    },
  };
}
