/**
 * Two PostgreSQL of the machine (Debian's packages): a primary, and its synchronous standby. Both listen on loopback. Their
 * environment names the folder, so that the `cleanUp` of a yard finds them.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';
import { findServiceAccount } from '../src/platform/service-account.ts';
import { query, signalPostgres } from './processes.ts';
import { until } from './until.ts';
import { postgresPrograms } from './requires.ts';

interface PostgresServer {
  port: number;
  url: string;
  /** Ends it as a crash does, with its connections. */
  kill(): Promise<void>;
  /** Its processes stop to run (SIGSTOP), or continue. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
}

export interface ReplicatedPostgres {
  primary: PostgresServer;
  standby: PostgresServer;
  remove(): Promise<void>;
}

const database = 'cloudyard';

/** Resolves when the standby is synchronous. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const programs = postgresPrograms()!;
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-replicated-'));
  chmodSync(folder, 0o755);
  const account = process.getuid?.() === 0 ? findServiceAccount('postgres') : null;
  const options = { ...account, cwd: folder, env: { ...process.env, CLOUDYARD_DATA_DIR: `${folder}/` } };
  const run = (program: string, ...args: string[]) => promisify(execFile)(join(programs, program), args, options);
  const children: ChildProcess[] = [];
  const endNow = () => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', endNow);

  const start = async (data: string): Promise<PostgresServer> => {
    const port = await freePort();
    const args = ['-D', data, '-p', String(port), '-k', data, '-c', 'listen_addresses=127.0.0.1'];
    const child = spawn(join(programs, 'postgres'), args, { ...options, stdio: 'ignore' });
    children.push(child);
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const admin = { host: '127.0.0.1', port, user: 'operator', database: 'postgres' };
    await until(() => query(admin, 'select').then(Boolean, () => false), 30, 'PostgreSQL');
    return {
      port,
      url: `postgres://operator@127.0.0.1:${port}/${database}`,
      signal: (signal) => signalPostgres(child.pid!, signal),
      async kill() {
        // SIGQUIT frees its shared memory, and ends all connections at once.
        child.kill('SIGQUIT');
        await ended;
      },
    };
  };

  const [primaryData, standbyData] = [join(folder, 'primary'), join(folder, 'standby')];
  mkdirSync(primaryData);
  if (account) for (const each of [folder, primaryData]) chownSync(each, account.uid, account.gid);
  execFileSync(
    join(programs, 'initdb'),
    ['-D', primaryData, '--username=operator', '--auth=trust', '--encoding=UTF8', '--no-sync'],
    { ...options, stdio: 'ignore' },
  );
  const primary = await start(primaryData);
  const onPrimary = { connectionString: primary.url.replace(/cloudyard$/, 'postgres') };
  await query(onPrimary, `create database ${database}`);
  const source = `host=127.0.0.1 port=${primary.port} user=operator application_name=standby`;
  await run('pg_basebackup', '-D', standbyData, '-d', source, '-R', '-X', 'stream', '-c', 'fast', '--no-sync');
  const standby = await start(standbyData);
  await query(onPrimary, `alter system set synchronous_standby_names = 'standby'`);
  await query(onPrimary, 'select pg_reload_conf()');
  const synchronous = `select from pg_stat_replication where sync_state = 'sync'`;
  await until(async () => (await query(onPrimary, synchronous)).length > 0, 30, 'a synchronous standby');
  return {
    primary,
    standby,
    async remove() {
      for (const server of [primary, standby]) {
        try {
          server.signal('SIGCONT');
        } catch {
          // It was killed.
        }
        await server.kill();
      }
      process.off('exit', endNow);
      endNow();
    },
  };
}
