/** Two PostgreSQL of the machine: a primary, and its synchronous standby. */
import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { query, signalPostgres } from './processes.ts';
import { systemPrograms } from './system-postgres.ts';
import { until } from './until.ts';

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
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-replicated-'));
  chmodSync(folder, 0o755);
  const programs = systemPrograms(folder);
  programs.own(folder);
  const children: ChildProcess[] = [];
  const endNow = () => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', endNow);

  const start = async (data: string): Promise<PostgresServer> => {
    const { child, port, end } = await programs.start(data, (client) => client.query('select'));
    children.push(child);
    return {
      port,
      url: `postgres://operator@127.0.0.1:${port}/${database}`,
      signal: (signal) => signalPostgres(child.pid!, signal),
      // SIGQUIT frees its shared memory, and ends all connections at once.
      kill: () => end('SIGQUIT'),
    };
  };

  const [primaryData, standbyData] = [join(folder, 'primary'), join(folder, 'standby')];
  await programs.initialize(primaryData);
  const primary = await start(primaryData);
  const onPrimary = { connectionString: primary.url.replace(/cloudyard$/, 'postgres') };
  await query(onPrimary, `create database ${database}`);
  const source = `host=127.0.0.1 port=${primary.port} user=operator application_name=standby`;
  await programs.run('pg_basebackup', '-D', standbyData, '-d', source, '-R', '-X', 'stream', '-c', 'fast', '--no-sync');
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
