/** Runs a command in this process, for tests. */
import { onTestFinished, vi } from 'vitest';
import type { cloneDatabase } from '../../../test/harness.ts';
import { checkoutPlaces } from '../../platform/program-files.ts';
import { type Command, parseCommandLine } from '../command-line.ts';
import { readSettings } from '../settings.ts';

/** Returns what the command prints. */
export async function runCommand(
  commands: Command[],
  args: string[],
  { connection }: Awaited<ReturnType<typeof cloneDatabase>>,
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
