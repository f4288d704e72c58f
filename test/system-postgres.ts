/** A PostgreSQL of the machine (Debian's packages), like an external database of an operator: a new cluster on loopback. */
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { freePort } from './free-port.ts';
import { findServiceAccount } from '../src/platform/service-account.ts';
import { succeeds } from '../src/platform/succeeds.ts';
import { withClient } from '../src/platform/with-client.ts';
import { until } from './until.ts';
import { postgresPrograms } from './requires.ts';

interface SystemPostgres {
  url: string;
  version: number;
  stop(): Promise<void>;
}

/** Starts a cluster. Its environment names the folder, so that the yard's `cleanUp` finds the processes. */
export async function startSystemPostgres(folder: string): Promise<SystemPostgres> {
  const programs = postgresPrograms()!;
  const data = join(folder, 'system-postgres');
  mkdirSync(data);
  const account = process.getuid?.() === 0 ? findServiceAccount('postgres') : null;
  if (account) chownSync(data, account.uid, account.gid);
  const env = { ...process.env, CLOUDYARD_DATA_DIR: `${folder}/` };
  const options = { ...account, env, cwd: data, stdio: 'ignore' } as const;
  execFileSync(
    join(programs, 'initdb'),
    ['-D', data, '--username=operator', '--auth=trust', '--encoding=UTF8'],
    options,
  );
  const port = await freePort();
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, '-p', String(port), '-k', data, '-c', 'listen_addresses=127.0.0.1'],
    options,
  );
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const urlOf = (name: string) => `postgres://operator:pa55word@127.0.0.1:${port}/${name}`;
  let version = 0;
  const prepare = async (client: pg.Client) => {
    await client.query(`create database cloudyard`);
    const { rows } = await client.query(`select current_setting('server_version_num')::int / 10000 as version`);
    version = rows[0].version;
  };
  await until(
    () => succeeds(withClient({ connectionString: urlOf('postgres') }, prepare)),
    30,
    'PostgreSQL of the machine',
  );
  return {
    url: urlOf('cloudyard'),
    version,
    async stop() {
      server.kill('SIGINT');
      await ended;
    },
  };
}
