/**
 * PostgreSQL of the machine (Debian's packages), like an external database of an operator: new clusters on loopback. Their
 * environment names the folder, so that the `cleanUp` of a yard finds the processes.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { freePort } from './free-port.ts';
import { findServiceAccount } from '../src/platform/service-account.ts';
import { succeeds } from '../src/platform/succeeds.ts';
import { withClient } from '../src/platform/with-client.ts';
import { until } from './until.ts';
import { postgresPrograms } from './requires.ts';

interface SystemServer {
  child: ChildProcess;
  port: number;
  end(signal: NodeJS.Signals): Promise<void>;
}

/** The programs of PostgreSQL, which refuse to run as root. */
export function systemPrograms(folder: string) {
  const programs = postgresPrograms()!;
  const account = process.getuid?.() === 0 ? findServiceAccount('postgres') : null;
  const options = { ...account, cwd: '/', env: { ...process.env, CLOUDYARD_DATA_DIR: `${folder}/` } };
  const run = (program: string, ...args: string[]) => promisify(execFile)(join(programs, program), args, options);
  return {
    run,
    /** Gives a path to the account of the programs. */
    own(path: string): void {
      if (account) chownSync(path, account.uid, account.gid);
    },
    /** Creates a cluster of the user `operator`. */
    async initialize(data: string): Promise<void> {
      mkdirSync(data);
      this.own(data);
      await run('initdb', '-D', data, '--username=operator', '--auth=trust', '--encoding=UTF8', '--no-sync');
    },
    /** Resolves when `prepare` has succeeded on a connection to the database `postgres`. */
    async start(data: string, prepare: (client: pg.Client) => Promise<unknown>): Promise<SystemServer> {
      const port = await freePort();
      const args = ['-D', data, '-p', String(port), '-k', data, '-c', 'listen_addresses=127.0.0.1'];
      const child = spawn(join(programs, 'postgres'), args, { ...options, stdio: 'ignore' });
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      const admin = { host: '127.0.0.1', port, user: 'operator', database: 'postgres' };
      await until(() => succeeds(withClient(admin, prepare)), 30, 'PostgreSQL of the machine');
      return {
        child,
        port,
        async end(signal) {
          child.kill(signal);
          await ended;
        },
      };
    },
  };
}

/** Starts a cluster with the database `cloudyard`. */
export async function startSystemPostgres(folder: string) {
  const programs = systemPrograms(folder);
  const data = join(folder, 'system-postgres');
  await programs.initialize(data);
  let version = 0;
  const { port, end } = await programs.start(data, async (client) => {
    await client.query(`create database cloudyard`);
    const { rows } = await client.query(`select current_setting('server_version_num')::int / 10000 as version`);
    version = rows[0].version;
  });
  return { url: `postgres://operator:pa55word@127.0.0.1:${port}/cloudyard`, version, stop: () => end('SIGINT') };
}
