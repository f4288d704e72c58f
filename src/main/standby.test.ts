/** How a standby ends: after a failover that failed, during one, and before one. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { liveProcess } from '../platform/running-processes.ts';
import { silentLogger } from '../platform/log.ts';
import type { ShutdownSteps } from './shutdown.ts';
import { startStandby } from './standby.ts';
import { takeLocks, type WorkLock } from './work-locks.ts';

const newLock = (dataDir: string | null = null) => ({ key: randomUUID(), what: 'a region or data directory', dataDir });

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-standby-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A standby that opens a driver, and then does what `after` says. `held`: another process has the lock. */
async function openStandby({ after, held = false }: { after: () => Promise<void>; held?: boolean }) {
  const connection = inject('postgres');
  const locks = [newLock()];
  const holder = held ? await takeLocks(connection, locks, silentLogger) : null;
  const endings: string[] = [];
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const work = async (opened: ShutdownSteps) => {
    opened.push(async (mode) => endings.push(`driver: ${mode}`));
    begun.resolve();
    await after();
    opened.push(async (mode) => endings.push(`worker: ${mode}`));
  };
  const kill = vi.spyOn(process, 'kill').mockImplementation((_pid, signal) => {
    endings.push(`process: ${String(signal)}, code ${process.exitCode}`);
    ended.resolve();
    return true;
  });
  onTestFinished(() => {
    kill.mockRestore();
    process.exitCode = undefined;
  });
  const close = startStandby({ connection, locks, log: silentLogger, work });
  const isFree = async () => {
    const own = await takeLocks(connection, locks, silentLogger).catch(() => null);
    await own?.release();
    return own !== null;
  };
  return { endings, begun: begun.promise, ended: ended.promise, close, isFree, holder };
}

/** The backend of PostgreSQL that has the lock. */
const holderOf = (admin: pg.Client, lock: { key: string }) => async () => {
  const { rows } = await admin.query<{ pid: number }>(
    `select pid from pg_locks where granted and locktype = 'advisory' and objsubid = 2
       and objid = (hashtext($1)::int8 & 4294967295)::oid`,
    [lock.key],
  );
  return rows[0]?.pid;
};

/**
 * Forwards connections to PostgreSQL. `loseAnswer`: the next attempt to lock reaches it, and only its client sees a broken
 * connection, or one on which nothing arrives any more.
 */
async function openNetwork() {
  const { host, port: behind, user, database } = new pg.Client(inject('postgres'));
  let loses: 'the connection' | 'the answer' | null = null;
  const listener = createServer((client) => {
    const server = host.startsWith('/') ? connectTo(`${host}/.s.PGSQL.${behind}`) : connectTo(behind, host);
    onTestFinished(() => void server.destroy());
    client.on('data', (data) => {
      server.write(data);
      if (loses === null || !data.includes('pg_try_advisory_lock')) return;
      if (loses === 'the connection') client.destroy();
      else server.removeAllListeners('data');
      loses = null;
    });
    server.on('data', (data) => client.write(data));
    server.on('close', () => client.destroy());
    for (const socket of [client, server]) socket.on('error', () => {});
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => void listener.close());
  const { port } = listener.address() as AddressInfo;
  const loseAnswer = (what: 'the connection' | 'the answer') => void (loses = what);
  return { connection: { host: '127.0.0.1', port, user: user!, database: database! }, loseAnswer };
}

describe('a failover that fails', () => {
  it('keeps the data planes that it has adopted, and ends the process with a code for which it is started again', async () => {
    const standby = await openStandby({ after: () => Promise.reject(new Error('the worker does not start')) });
    await standby.ended;
    expect(standby.endings).toEqual(['driver: keepDataPlanes', 'process: SIGTERM, code 1']);
    // SIGTERM to `start`: everything else stops, and the data planes keep running.
    await standby.close('stop');
    expect(standby.endings).toEqual(['driver: keepDataPlanes', 'process: SIGTERM, code 1']);
    expect(await standby.isFree()).toBe(true);
  });
});

describe('a standby that is stopped', () => {
  it('during its failover ends everything that the failover opens', async () => {
    const { promise: continued, resolve: continues } = Promise.withResolvers<void>();
    const standby = await openStandby({ after: () => continued });
    await standby.begun;
    const closed = standby.close('stop');
    continues();
    await closed;
    expect(standby.endings).toEqual(['worker: stop', 'driver: stop']);
    expect(await standby.isFree()).toBe(true);
  });

  it('before its failover opens nothing', async () => {
    const standby = await openStandby({ after: async () => {}, held: true });
    await standby.close('stop');
    await standby.holder?.release();
    expect(standby.endings).toEqual([]);
    expect(await standby.isFree()).toBe(true);
  });
});

describe('a process whose lock another one took while PostgreSQL restarted', () => {
  /** Returns how the process ends. */
  async function endingOf(...locks: WorkLock[]): Promise<unknown[]> {
    const connection = inject('postgres');
    const held = await takeLocks(connection, locks, silentLogger);
    const clients = await Promise.all(
      ['admin', ...locks].map(async () => {
        const client = new pg.Client(connection);
        await client.connect();
        return client;
      }),
    );
    const [admin, ...others] = clients as [pg.Client, ...pg.Client[]];
    const endings: unknown[] = [];
    const kill = vi.spyOn(process, 'kill').mockImplementation((_pid, signal) => {
      endings.push(signal);
      return true;
    });
    const exit = vi.spyOn(process, 'exit').mockImplementation((code) => endings.push({ exit: code }) as never);
    onTestFinished(async () => {
      for (const spy of [kill, exit]) spy.mockRestore();
      process.exitCode = undefined;
      await held.release();
      await Promise.all(clients.map((client) => client.end()));
    });
    const pid = await holderOf(admin, locks[0]!)();
    // They wait, so they have the locks before the first process can take them again.
    const taken = locks.map(({ key }, i) =>
      others[i]!.query('select pg_advisory_lock($1, hashtext($2))', [0x636c6f76, key]),
    );
    const waiting = `select from pg_locks where not granted and locktype = 'advisory'
      and objid::int8::bit(32)::int4 = any (select hashtext(key) from unnest($1::text[]) as given (key))`;
    const keys = locks.map(({ key }) => key);
    await expect.poll(async () => (await admin.query(waiting, [keys])).rowCount).toBe(locks.length);
    await admin.query('select pg_terminate_backend($1)', [pid]);
    await Promise.all(taken);
    await expect.poll(() => endings).toHaveLength(1);
    return endings;
  }

  it('ends with a code for which its supervisor starts it again', async () => {
    expect(await endingOf(newLock())).toEqual(['SIGINT']);
    expect(process.exitCode).toBe(1);
  });

  it('ends at once if the other process has adopted its data planes', async () => {
    const [region, dataDirectory] = [newLock(), newLock(newFolder())];
    expect(await endingOf(region, dataDirectory)).toEqual([{ exit: 1 }]);
  });
});

describe('the next process with a data directory', () => {
  /** Another process has the data directory, and no locks. */
  function openOther() {
    const dataDir = newFolder();
    const other = spawn('sleep', ['60']);
    onTestFinished(() => void other.kill('SIGKILL'));
    const { startTime } = liveProcess(other.pid!)!;
    const record = (path: string) => writeFileSync(join(dataDir, 'worker.pid'), `${other.pid} ${startTime} ${path}\n`);
    return { dataDir, other, record };
  }
  const take = async (dataDir: string) => {
    const held = await takeLocks(inject('postgres'), [newLock(dataDir)], silentLogger);
    await held.release();
  };

  it('waits until a process has ended that lost the lock while it was frozen', async () => {
    const { dataDir, other, record } = openOther();
    record(dataDir);
    other.kill('SIGSTOP');
    await expect(take(dataDir)).rejects.toThrow(`in use by process ${other.pid}`);
    other.kill('SIGKILL');
    await once(other, 'exit');
    await take(dataDir);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('writes through no link that another account has put in the data directory', async () => {
    const { dataDir } = openOther();
    const target = join(newFolder(), 'target');
    writeFileSync(target, 'kept');
    symlinkSync(target, join(dataDir, 'worker.pid'));
    await take(dataDir);
    expect(readFileSync(target, 'utf8')).toBe('kept');
  });

  it('does not wait for the process of the directory of which it has a copy', async () => {
    const { dataDir, record } = openOther();
    record('/srv/original');
    await take(dataDir);
  });
});

describe('a process that finds a lock taken', () => {
  it('names the process that has it, not one that has the same lock in another database', async () => {
    const connection = inject('postgres');
    const lock = newLock();
    const takeElsewhere = async () => {
      const other = new pg.Client({ ...connection, database: 'postgres', application_name: 'another installation' });
      await other.connect();
      onTestFinished(() => other.end());
      await other.query('select pg_advisory_lock_shared($1, hashtext($2))', [0x636c6f76, lock.key]);
    };
    // PostgreSQL lists locks in any order.
    await Promise.all(Array.from({ length: 10 }, takeElsewhere));
    const held = await takeLocks(connection, [lock], silentLogger);
    onTestFinished(() => held.release());
    const holder = `in use by cloudyard worker, process ${process.pid}`;
    await expect(takeLocks(connection, [lock], silentLogger)).rejects.toThrow(holder);
  });
});

describe('a process whose connection with the lock does not respond', () => {
  it('keeps its work, and takes the lock again when PostgreSQL has ended the connection', async () => {
    const connection = inject('postgres');
    const lock = newLock();
    const held = await takeLocks(connection, [lock], silentLogger);
    const admin = new pg.Client(connection);
    await admin.connect();
    const holder = holderOf(admin, lock);
    const frozen = (await holder())!;
    process.kill(frozen, 'SIGSTOP');
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    onTestFinished(async () => {
      kill.mockRestore();
      await held.release();
      await admin.end();
    });
    // Until the connection counts as lost, and several attempts.
    await sleep(10_000);
    expect(kill.mock.calls).toEqual([]);
    expect(await holder()).toBe(frozen);
    kill.mockRestore();
    process.kill(frozen, 'SIGCONT');
    await expect.poll(holder, { timeout: 10_000 }).not.toBe(frozen);
    await expect.poll(holder, { timeout: 10_000 }).toBeDefined();
  }, 60_000);

  it.each(['the connection', 'the answer'] as const)('keeps its work when its next attempt loses %s', async (what) => {
    const network = await openNetwork();
    const lock = newLock();
    const held = await takeLocks(network.connection, [lock], silentLogger);
    const admin = new pg.Client(inject('postgres'));
    await admin.connect();
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    onTestFinished(async () => {
      kill.mockRestore();
      process.exitCode = undefined;
      await held.release();
      await admin.end();
    });
    const holder = holderOf(admin, lock);
    const first = (await holder())!;
    network.loseAnswer(what);
    await admin.query('select pg_terminate_backend($1)', [first]);
    await expect.poll(async () => [first, undefined].includes(await holder())).toBe(false);
    const second = await holder();
    await expect.poll(async () => [first, second, undefined].includes(await holder()), { timeout: 10_000 }).toBe(false);
    expect(kill.mock.calls).toEqual([]);
  });
});
