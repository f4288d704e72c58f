/**
 * Locks for resources that only one process at a time may use: a data directory, with the images, exports and daemons of a
 * host, and a region, whose data is on one host. They are advisory locks in the database, so they end with the process,
 * however it ends. `application_name` of the connection identifies the holder.
 */
import { realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type ConnectionOptions, detectLostHost } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import { backendOf } from '../platform/lost-servers.ts';
import { breakConnection, createPrimaryClient } from '../platform/primary-client.ts';
import { findOtherOwner, recordOwner, removeOwner } from './data-directory-owner.ts';
import { endAsFailed, endAtOnce } from './shutdown.ts';

const workLocks = 0x636c6f76;
const waitMs = 500;
/** Longer than the holder of a lock needs to take it again after a failover of PostgreSQL. */
const precedenceMs = 3000;
const pingMs = 2000;
const answerMs = 5000;
/** `application_name` of the connections, which PostgreSQL truncates. */
const ownName = `cloudyard worker, process ${process.pid} on ${hostname()}`.slice(0, 63);

export interface WorkLock {
  key: string;
  /** For messages: `the data directory /srv/cloudyard`. */
  what: string;
  /** Null: not of a data directory. The next process with the lock of one adopts the data planes. */
  dataDir: string | null;
}

/** The lock of a data directory on this host. */
export const dataDirectoryLock = (dataDir: string): WorkLock => ({
  key: `${hostname()}:${realpathSync(dataDir)}`,
  what: `the data directory ${dataDir}`,
  dataDir: realpathSync(dataDir),
});

/** The lock of the worker of a region, on any host. */
export const regionLock = (regionId: number): WorkLock => ({
  key: `region:${regionId}`,
  what: `region ${regionId}`,
  dataDir: null,
});

/** Another process holds a lock. */
export class LockTaken extends Error {
  readonly lock: WorkLock;
  constructor(lock: WorkLock, holder: string) {
    super(`${lock.what} is in use by ${holder}`);
    this.lock = lock;
  }
}

/**
 * Takes all of the locks or none, and keeps them through restarts of PostgreSQL.
 * @throws LockTaken that names the lock and its holder
 */
export async function takeLocks(connection: ConnectionOptions, locks: WorkLock[], log: Logger) {
  // If a standby on this host has taken all of them, this process must not stop the data planes that it has adopted.
  const inOrder = locks.toSorted((a, b) => Number(b.dataDir !== null) - Number(a.dataDir !== null));
  let client: pg.Client;
  let released = false;
  /** The backends of all connections: any of them may have taken a lock, also one whose answer was lost. */
  const own = new Set<number>();

  const dataDirs = locks.map(({ dataDir }) => dataDir).filter((dataDir) => dataDir !== null);

  const take = async (): Promise<void> => {
    refuseOtherOwners(locks);
    client = createPrimaryClient({
      ...connection,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      application_name: ownName,
    });
    // Errors also show as rejections, or as the `end` event below.
    client.on('error', () => {});
    await client.connect();
    own.add(backendOf(client));
    try {
      await client.query(detectLostHost);
      for (const lock of inOrder) await takeOne(client, lock, own);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    for (const dataDir of dataDirs) recordOwner(dataDir, log);
    client.once('end', () => {
      if (!released) void retake();
    });
    ping(client);
  };

  /** After a restart of PostgreSQL. Another process may have taken the locks first; this one must then exit. */
  const retake = async (): Promise<void> => {
    while (!released) {
      try {
        return await take();
      } catch (error) {
        if (error instanceof LockTaken) {
          log.fatal({ err: error }, 'another process took the lock; stopping');
          // When it is started again, it waits as a standby. The other process has adopted the daemons of the data directory,
          // and changes its files. Of a region, it serves with daemons of its own, so SIGINT stops those of this process.
          return error.lock.dataDir !== null ? endAtOnce() : endAsFailed('SIGINT');
        }
        await sleep(waitMs, undefined, { ref: false });
      }
    }
  };

  await take();
  return {
    async release(): Promise<void> {
      released = true;
      for (const dataDir of dataDirs) removeOwner(dataDir);
      await client.end().catch(() => {});
    },
  };
}

/** @throws LockTaken */
function refuseOtherOwners(locks: WorkLock[]): void {
  for (const lock of locks) {
    const other = lock.dataDir === null ? null : findOtherOwner(lock.dataDir);
    if (other !== null) throw new LockTaken(lock, `process ${other} on ${hostname()}`);
  }
}

/** Closes the connection when its server does not answer: another process may hold the locks there by now. */
function ping(client: pg.Client): void {
  let answered = true;
  const timer = setInterval(() => {
    if (!answered) return;
    answered = false;
    client.query('select').then(
      () => (answered = true),
      () => breakConnection(client, 'the database does not answer', '08006'),
    );
  }, pingMs).unref();
  client.once('end', () => clearInterval(timer));
}

/**
 * Waits until the locks are free; returns null when `signal` aborts first. When the database was away, their holder may take
 * them again first.
 */
export async function waitForLocks(connection: ConnectionOptions, locks: WorkLock[], log: Logger, signal: AbortSignal) {
  let wasAway = false;
  while (!signal.aborted) {
    try {
      if (wasAway) {
        await connectOnce(connection);
        wasAway = false;
        await sleep(precedenceMs, undefined, { signal });
      }
      return await takeLocks(connection, locks, log);
    } catch (error) {
      if (!(error instanceof LockTaken)) wasAway = true;
      await sleep(waitMs, undefined, { signal }).catch(() => {});
    }
  }
  return null;
}

async function connectOnce(connection: ConnectionOptions): Promise<void> {
  const client = createPrimaryClient({ ...connection, connectionTimeoutMillis: answerMs });
  client.on('error', () => {});
  await client.connect().finally(() => client.end().catch(() => {}));
}

/**
 * PostgreSQL may not have noticed the end of a connection that broke on this side only, because its backend was frozen or the
 * network was cut. Such a backend is one of `own`, and is ended so that a later attempt takes the lock.
 * @throws LockTaken
 */
async function takeOne(client: pg.Client, lock: WorkLock, own: Set<number>): Promise<void> {
  const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1, hashtext($2)) as taken', [
    workLocks,
    lock.key,
  ]);
  if (rows[0]!.taken) return;
  const holder = await holderOf(client, lock);
  if (holder && own.has(holder.pid) && holder.application_name === ownName) {
    await client.query('select pg_terminate_backend($1)', [holder.pid]);
    throw new Error(`a lost connection of this process still has the lock of ${lock.what}`);
  }
  const name = holder ? `${holder.application_name} (since ${holder.backend_start.toISOString()})` : 'another process';
  throw new LockTaken(lock, name);
}

interface Holder {
  pid: number;
  application_name: string;
  backend_start: Date;
}

/** Locks of other databases of the server, such as those of another installation, have the same keys. */
async function holderOf(client: pg.Client, lock: WorkLock): Promise<Holder | undefined> {
  const { rows } = await client.query<Holder>(
    `select a.pid, a.application_name, a.backend_start from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 2
       and l.database = (select oid from pg_database where datname = current_database())
       and l.classid = $1::int8::oid and l.objid = (hashtext($2)::int8 & 4294967295)::oid`,
    [workLocks, lock.key],
  );
  return rows[0];
}
