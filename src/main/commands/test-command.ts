/** Runs commands in this process, for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, inject, onTestFinished, vi } from 'vitest';
import { cloneDatabase } from '../../../test/harness.ts';
import { checkoutPlaces } from '../../platform/program-files.ts';
import { type Command, parseCommandLine } from '../command-line.ts';
import { readSettings } from '../settings.ts';

type Database = Awaited<ReturnType<typeof cloneDatabase>>;

/** A database and a folder for the commands of a test file. `run` returns what a command prints. */
export function useCommands(commands: Command[]) {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-commands-'));
  let database: Database;
  beforeAll(async () => {
    database = await cloneDatabase(inject('postgres'));
  });
  afterAll(async () => {
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    folder,
    connection: () => database.connection,
    run: (args: string[], settings: Record<string, string> = {}) =>
      runCommand(commands, args, database, { CLOUDYARD_DATA_DIR: folder, ...settings }),
  };
}

async function runCommand(
  commands: Command[],
  args: string[],
  { connection }: Database,
  settings: Record<string, string>,
): Promise<{ stdout: string; stderr: string }> {
  const { connectionString, user, host, port, database } = connection;
  const url = connectionString ?? `postgres://${user}@${encodeURIComponent(host!)}:${port}/${database}`;
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    const spy = vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      printed[stream] += String(text);
      return true;
    });
    onTestFinished(() => spy.mockRestore());
  }
  const env = { DATABASE_URL: url, ...settings };
  await parseCommandLine(commands, args).run(readSettings(env, checkoutPlaces(process.cwd()), false));
  return printed;
}
