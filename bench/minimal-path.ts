/**
 * The peer of the whole path: pgbench with the least that PostgreSQL must do for a create, its job and its end. The script
 * is fixed. Statements recorded from Cloudyard would be no peer: a change that needs more of them would slow both sides.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import type { Cloudyard } from './cloudyard.ts';
import { findProgram } from './programs.ts';

const database = 'minimal_path';
const clients = 8;
const threads = 2;
const seconds = 3;
const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const script = fileOf('minimal-path.sql');

/** Prepares a database on the server of Cloudyard. Returns the measurement: transactions a second. */
export async function minimalTransactions(cloudyard: Cloudyard): Promise<() => Promise<number>> {
  const server = cloudyard.database;
  await execute(server, `create database ${database}`);
  await execute({ ...server, database }, readFileSync(fileOf('minimal-path-init.sql'), 'utf8'));
  return async () => {
    const { stdout } = await promisify(execFile)(findProgram('pgbench')!, [
      ...['--no-vacuum', '--protocol', 'prepared', '--file', script],
      ...['--client', String(clients), '--jobs', String(threads), '--time', String(seconds)],
      ...['--host', server.host!, '--port', String(server.port), '--username', String(server.user), database],
    ]);
    return Number(/tps = ([\d.]+) \(without/.exec(stdout)![1]);
  };
}

async function execute(server: Cloudyard['database'], sql: string): Promise<void> {
  const client = new pg.Client(server);
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
