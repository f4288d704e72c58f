/** Runs statements with pgbench, prepared, over the same socket and on the same database that the server uses. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ConnectionOptions } from '../src/platform/db.ts';
import { findProgram } from './programs.ts';
import type { Script } from './statements.ts';
import type { Workplace } from './workplace.ts';

const program = findProgram('pgbench');

/** Why there is no peer to compare with; null when there is one. */
export const missingPgbench = program ? null : 'skipped: pgbench is not installed';

/** @throws when a statement fails */
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
