/** Runs prepared statements with pgbench over the server's socket and on its database. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ConnectionOptions } from '../src/platform/db.ts';
import { findProgram } from './programs.ts';
import type { Script } from './statements.ts';
import type { Workplace } from './workplace.ts';

const program = findProgram('pgbench');

/** The reason to skip comparisons with pgbench, or null. */
export const missingPgbench = program ? null : 'skipped: pgbench is not installed';

/** @throws if a statement fails */
export async function transactionsPerSecond(
  workplace: Workplace,
  database: ConnectionOptions,
  script: Script,
  run: { clients: number; seconds: number },
): Promise<number> {
  const file = join(workplace.dir, 'pgbench.sql');
  writeFileSync(file, script.text);
  const { stdout } = await promisify(execFile)(program!, [
    ...['--no-vacuum', '--protocol', 'prepared', '--file', file],
    ...['--client', String(run.clients), '--jobs', '1', '--time', String(run.seconds)],
    ...Object.entries(script.variables).flatMap(([name, value]) => ['--define', `${name}=${value}`]),
    ...['--host', database.host!, '--port', String(database.port), '--username', String(database.user)],
    String(database.database),
  ]);
  return Number(/tps = ([\d.]+) \(without/.exec(stdout)![1]);
}
