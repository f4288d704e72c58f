/**
 * Injects crashes everywhere: runs a reconcile with a failure before and after each of its statements and driver calls,
 * then without a failure, and checks the result; then runs it again, which must change nothing.
 *
 * Failure modes: `fault` fails one step and the process continues, so clean-up runs. `death` fails every later step, so
 * only the state of PostgreSQL and the host remains. "After" means that the step was executed but its response was lost,
 * for example of a commit. A third mode, `meddle`, fails nothing: a client changes the resource at that step.
 */
import { type AddressInfo, connect as dial, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import type { ConnectionOptions, Db } from '../src/platform/db.ts';
import { silentLogger } from '../src/platform/log.ts';
import { type Reconciler, runReconcile } from '../src/tasks/reconcile.ts';
import type { Tasks } from '../src/tasks/tasks.ts';

export interface CrashCase<Driver extends object> {
  db: Db;
  tasks: Tasks;
  driver: Driver;
  /** The reconciler under test, over a database and a driver that may fail. */
  reconciler(db: Db, driver: Driver): Reconciler;
  /** Creates a resource that needs reconciling. Returns its id. */
  arrange(): Promise<string>;
  /** Checks the state that every run must end in. */
  check(id: string): Promise<void>;
  /** A client's change. If present, it runs before and after every step instead of failures. */
  meddle?(id: string): Promise<unknown>;
}

interface CrashFigures {
  /** Statements and driver calls of the longest run. */
  steps: number;
  /** Runs with an injected failure. */
  injected: number;
}

const never = new AbortController().signal;
const unwatched = { log: silentLogger, onDriverError: () => {} };
type Moment = 'before' | 'after';
type Kind = 'fault' | 'death' | 'meddle';
/** Death before a step equals death after the previous step. */
const failures: [Kind, Moment][] = [
  ['fault', 'before'],
  ['fault', 'after'],
  ['death', 'after'],
];
const visits: [Kind, Moment][] = [
  ['meddle', 'before'],
  ['meddle', 'after'],
];

export async function crashEverywhere<Driver extends object>(given: CrashCase<Driver>): Promise<CrashFigures> {
  const figures: CrashFigures = { steps: 0, injected: 0 };
  const settleAndCheck = async (id: string, what: string) => {
    await settle(given, id);
    await named(`${what}, then a run without a failure`, () => given.check(id));
    await settle(given, id);
    await named(`${what}, then two runs without a failure`, () => given.check(id));
  };
  const injectOnce = async (kind: Kind, moment: Moment, at: number): Promise<boolean> => {
    const id = await given.arrange();
    const injector = await attempt(given, id, new Injector(at, moment, kind, () => given.meddle!(id)));
    if (!injector.injected && kind === 'meddle') return false;
    await settleAndCheck(id, `${kind} ${moment} step ${at} (${injector.name})`);
    figures.steps = Math.max(figures.steps, injector.count);
    figures.injected += injector.injected ? 1 : 0;
    return injector.injected;
  };
  /** One resource whose attempts each fail one step later than the previous attempt. */
  const injectInTurn = async (kind: Kind, moment: Moment): Promise<void> => {
    const id = await given.arrange();
    for (let at = 1; (await attempt(given, id, new Injector(at, moment, kind))).injected; at++) figures.injected += 1;
    await settleAndCheck(id, `a ${kind} ${moment} each step in turn`);
  };

  for (const [kind, moment] of given.meddle ? visits : failures) {
    for (let at = 1; await injectOnce(kind, moment, at); at++);
    if (kind !== 'meddle') await injectInTurn(kind, moment);
  }
  return figures;
}

class InjectedFailure extends Error {}

/** Counts steps, and injects a failure or a change at one of them. */
class Injector {
  count = 0;
  injected = false;
  name = 'none';
  /** The change of the client, once it has started. */
  meddling: Promise<unknown> = Promise.resolve();
  private readonly at: number;
  private readonly moment: Moment;
  private readonly kind: Kind;
  private readonly meddle: () => Promise<unknown>;

  constructor(at: number, moment: Moment, kind: Kind, meddle = async (): Promise<unknown> => undefined) {
    this.at = at;
    this.moment = moment;
    this.kind = kind;
    this.meddle = meddle;
  }

  /** `abort`: for a statement of a transaction, aborts the transaction, as PostgreSQL does when a statement fails. */
  async step<T>(name: string, work: () => Promise<T>, abort?: () => Promise<unknown>): Promise<T> {
    if (this.injected && this.kind === 'death') throw new InjectedFailure('this process is dead');
    this.count += 1;
    const mine = this.count === this.at;
    if (mine) this.name = name;
    if (mine && this.moment === 'before') await this.inject(abort);
    const result = await work();
    if (mine && this.moment === 'after') await this.inject(abort);
    return result;
  }

  private async inject(abort?: () => Promise<unknown>): Promise<void> {
    this.injected = true;
    // A commit may already be on its way behind this statement.
    if (this.kind === 'fault' && this.moment === 'before') await abort?.().catch(() => {});
    if (this.kind !== 'meddle') throw new InjectedFailure(`failed ${this.moment} ${this.name}`);
    this.meddling = this.meddle();
    // The client may have to wait for this transaction.
    if (!abort) await this.meddling;
  }
}

/** One run as in the worker, with the failure or change of the injector. */
async function attempt<D extends object>(given: CrashCase<D>, id: string, injector: Injector): Promise<Injector> {
  const db = injectedDb(given.db, injector);
  const reconciler = given.reconciler(db, injectedDriver(given.driver, injector));
  await run(given, { db, reconciler, id, attempt: 1 }).catch((error: unknown) => {
    if (!injector.injected) throw error;
  });
  await injector.meddling;
  return injector;
}

/** Runs without a failure until no run requests another one. */
async function settle<D extends object>(given: CrashCase<D>, id: string): Promise<void> {
  const { db, driver } = given;
  for (let i = 2; i < 50; i++) {
    if (!(await run(given, { db, reconciler: given.reconciler(db, driver), id, attempt: i })).again) return;
  }
  throw new Error('the reconciler does not converge');
}

async function run<D extends object>(
  given: CrashCase<D>,
  { db, reconciler, id, attempt }: { db: Db; reconciler: Reconciler; id: string; attempt: number },
): Promise<{ again: boolean }> {
  const end = await runReconcile({ db, tasks: given.tasks, ...unwatched }, reconciler, { id, attempt }, never);
  return { again: 'againAfter' in end };
}

/** Reconciles a resource without failures, to set up a scenario. */
export async function reconcileOnce(db: Db, tasks: Tasks, reconciler: Reconciler, id: string): Promise<void> {
  await runReconcile({ db, tasks, ...unwatched }, reconciler, { id, attempt: 1 }, never);
}

async function named(what: string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (error instanceof Error) error.message = `after ${what}: ${error.message}`;
    throw error;
  }
}

/** The same database with each statement as a step, on the pool and on connections of transactions. */
function injectedDb(db: Db, injector: Injector): Db {
  type Query = (...args: unknown[]) => Promise<unknown>;
  const counted = (on: { query: unknown }, inTransaction: boolean): Query => {
    const query = (on.query as Query).bind(on);
    const abort = inTransaction ? () => query('select 1 / 0') : undefined;
    return (...args) => {
      const step = (work: () => Promise<unknown>) => injector.step(statementOf(args[0]), work, abort);
      const callback = args.at(-1);
      if (typeof callback !== 'function') return step(() => query(...args));
      const promised = () =>
        new Promise<unknown>((resolve, reject) => {
          const settle = (error: unknown, result: unknown) => (error ? reject(error as Error) : resolve(result));
          void query(...args.slice(0, -1), settle);
        });
      return step(promised).then(
        (result) => callback(null, result) as unknown,
        (error: unknown) => callback(error) as unknown,
      );
    };
  };
  const client = (of: pg.PoolClient) => replace(of, { query: counted(of, true) });
  const pool = db.$client;
  const connect = async () => client(await pool.connect());
  return drizzle({ client: replace(pool, { query: counted(pool, false), connect }) }) as unknown as Db;
}

/** The same driver with each asynchronous call as a step. */
function injectedDriver<D extends object>(driver: D, injector: Injector): D {
  return new Proxy(driver, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function' || name === 'status') return value;
      return (...args: unknown[]) => injector.step(String(name), async () => value.apply(target, args) as unknown);
    },
  });
}

/** `target` with some members replaced. */
function replace<T extends object>(target: T, members: Record<string, unknown>): T {
  return new Proxy(target, {
    get(of, name) {
      if (typeof name === 'string' && Object.hasOwn(members, name)) return members[name];
      const value = Reflect.get(of, name) as unknown;
      return typeof value === 'function' ? value.bind(of) : value;
    },
  });
}

function statementOf(query: unknown): string {
  const text = typeof query === 'string' ? query : (query as { name?: string; text: string });
  return typeof text === 'string' ? text : (text.name ?? text.text.replaceAll(/\s+/g, ' ').slice(0, 60));
}

/** Counters, and queries for their expected values: `select client_id, region_id, n as amount …`. */
type Truth = Record<string, string>;

export const truthOfShares: Truth = {
  sfs_count: 'select client_id, region_id, count(*) as amount from file_shares group by 1, 2',
  sfs_size: 'select client_id, region_id, sum(size) as amount from file_shares group by 1, 2',
};
export const truthOfVolumes: Truth = {
  volume_count: 'select client_id, region_id, count(*) as amount from volumes group by 1, 2',
  volume_size: 'select client_id, region_id, sum(size) as amount from volumes group by 1, 2',
  volume_snapshots_count: 'select client_id, region_id, count(*) as amount from snapshots group by 1, 2',
  volume_snapshots_size: 'select client_id, region_id, sum(size) as amount from snapshots group by 1, 2',
};

/** Messages about counters that differ from the rows; empty if none do. */
export async function drift(db: Db, truth: Truth): Promise<string[]> {
  const found: string[] = [];
  for (const [kind, rows] of Object.entries(truth)) {
    const { rows: differing } = await db.$client.query<{ client: number; region: number; said: number; is: number }>(
      `with rows as (${rows}), said as (select client_id, region_id, usage from quota_counters where kind = $1)
       select coalesce(s.client_id, i.client_id) as client, coalesce(s.region_id, i.region_id) as region,
              coalesce(s.usage, 0) as said, coalesce(i.amount, 0) as "is"
       from said s full join rows i on i.client_id = s.client_id and i.region_id = s.region_id
       where coalesce(s.usage, 0) <> coalesce(i.amount, 0)`,
      [kind],
    );
    for (const { client, region, said, is } of differing) {
      found.push(`counter ${kind} of client ${client} in region ${region} is ${said}, but the rows sum to ${is}`);
    }
  }
  return found;
}

/** Runs every job in backoff immediately. */
export async function retryNow(db: Db): Promise<void> {
  await db.$client.query(
    `with due as (update jobs set run_at = now() where run_at > now() and locked_by is null returning queue)
     select pg_notify('jobs:' || queue, '') from due`,
  );
}

/** A proxy to PostgreSQL that a test can break, like a network failure, a restart or a failover. */
export type Gate = Awaited<ReturnType<typeof openGate>>;

interface Network {
  /** Of every packet in each direction. */
  latencyMs?: number;
  bytesPerSecond?: number;
  /** From the end of one side of a connection to that of the other. */
  closeMs?: number;
}

export async function openGate(to: ConnectionOptions) {
  const { host, port: behind, user, database } = new pg.Client(to);
  const target = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${behind}` } : { host, port: behind };
  const sockets = new Set<Socket>();
  const silent = new WeakSet<Socket>();
  let deaf = false;
  let dropped = 0;
  let network: Network = {};
  let attempts = { toReject: 0, rejected: () => {} };
  const server = createServer((client) => {
    if (attempts.toReject > 0) {
      client.on('error', () => {}).destroy();
      attempts.toReject -= 1;
      if (attempts.toReject === 0) attempts.rejected();
      return;
    }
    const postgres = dial(target as { host: string; port: number });
    for (const [mine, other] of [
      [client, postgres],
      [postgres, client],
    ] as const) {
      sockets.add(mine);
      let sent = Promise.resolve();
      let queued = 0;
      mine.on('data', (data) => {
        if (silent.has(mine) || (mine === postgres && deaf)) {
          dropped += 1;
          return;
        }
        const { latencyMs, bytesPerSecond } = network;
        if (queued === 0 && !latencyMs && !bytesPerSecond) return void other.write(data);
        queued += 1;
        const arrival = performance.now();
        sent = sent.then(() => sendSlowly(other, data, arrival, network)).then(() => void (queued -= 1));
      });
      mine.on('error', () => {});
      mine.on('close', () => {
        sockets.delete(mine);
        if (!network.closeMs) other.destroy();
        else void sleep(network.closeMs, undefined, { ref: false }).then(() => other.destroy());
      });
    }
  });
  server.unref();
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const connection: ConnectionOptions = { host: '127.0.0.1', port, user, database };
  return {
    connection,
    /** Breaks every connection and refuses new ones. */
    async cut(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
      deaf = false;
    },
    restore: () => listen(port),
    /** Breaks every connection, and resolves when this number of new ones was rejected. Later ones reach PostgreSQL. */
    rejectAttempts(count: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      attempts = { toReject: count, rejected: resolve };
      for (const socket of sockets) socket.destroy();
      return promise;
    },
    /** Until the next cut, requests reach PostgreSQL but responses are dropped. */
    deafen(): void {
      deaf = true;
    },
    /** Changes the network from now on; `{}` makes it fast again. */
    degrade(next: Network): void {
      network = next;
    },
    /** Drops everything on the connections that are open now, in both directions, until the next cut. */
    silence(): void {
      for (const socket of sockets) silent.add(socket);
    },
    /** The number of packets that `silence` and `deafen` have dropped. */
    dropped: () => dropped,
  };
}

const chunkBytes = 128;

/** Latencies of packets that follow each other overlap, as on a long line. */
async function sendSlowly(to: Socket, data: Buffer, arrival: number, network: Network): Promise<void> {
  const { latencyMs = 0, bytesPerSecond } = network;
  const left = arrival + latencyMs - performance.now();
  if (left > 0) await sleep(left);
  if (!bytesPerSecond) return void to.write(data);
  for (let at = 0; at < data.length && !to.destroyed; at += chunkBytes) {
    to.write(data.subarray(at, at + chunkBytes));
    await sleep((chunkBytes / bytesPerSecond) * 1000);
  }
}
