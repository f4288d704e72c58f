/** What the commands that read or change the database share. */
import { aligned, oneLine } from '../../client/output.ts';
import { createDataDirectory } from '../../platform/data-directory.ts';
import { openKeyFile } from '../../platform/key-file.ts';
import type { Logger } from '../../platform/log.ts';
import { openClock } from '../clock.ts';
import type { Settings } from '../settings.ts';
import { program } from '../program.ts';
import type { Services } from '../services.ts';
import { UsageError } from '../usage-error.ts';

const poolSize = 2;

/**
 * Migrates the database, creates the services for `work`, and closes everything afterwards. `force`: see `migrateInstallation`.
 * @throws if a restore was interrupted, or the database cannot be reached or migrated
 */
export async function withServices(
  settings: Settings,
  work: (services: Services) => Promise<void>,
  { force = false } = {},
): Promise<void> {
  const { openDatabase } = await import('../database.ts');
  const { configurationFiles, readConfiguration } = await import('../configuration.ts');
  const { migrateInstallation } = await import('../migration-backup.ts');
  const { createServices } = await import('../services.ts');
  createDataDirectory(settings.dataDir);
  const log = await createCommandLogger(settings);
  const configuration = readConfiguration(configurationFiles(settings), log);
  const database = await openDatabase(settings, log);
  let services: Services | undefined;
  let stopClock = () => {};
  try {
    await migrateInstallation(settings, database.connection, note, { force });
    const db = database.connect('cloudyard command', poolSize);
    const { clock, movableClock, stop } = await openClock(settings, db, log);
    stopClock = stop;
    const keyring = openKeyFile(settings.keyFile);
    services = await createServices({ db, clock, movableClock, log, configuration, keyring });
    await services.clients.bootstrap();
    await work(services);
  } finally {
    services?.caches.stop();
    stopClock();
    await database.close();
  }
}

/** Logs errors to standard error: standard output contains only the result of the command. */
export async function createCommandLogger({ logFormat }: Settings): Promise<Logger> {
  const { createLogger } = await import('../../platform/log.ts');
  return createLogger({ level: 'error', pretty: logFormat === 'pretty', toStandardError: true });
}

/** @throws Error with the command that lists clients */
export async function requireClient({ clients }: Services, clientId: number): Promise<void> {
  if (await clients.exists(clientId)) return;
  throw new Error(`client ${clientId} not found; list clients with: ${program} client list`);
}

/** That of an `integer` column. */
const maxId = 2_147_483_647;

/** @throws UsageError that names the argument */
export function idNumber(name: string, text: string): number {
  const id = wholeNumber(name, text);
  if (id > maxId) throw new UsageError(`${name} must be at most ${maxId}, not ${text}`);
  return id;
}

/** @throws UsageError that names the argument */
export function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${name} must be a whole number, not ${JSON.stringify(text)}`);
  return Number(text);
}

/** Writes a line to standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Writes a line to standard error: standard output contains only the result. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Columns for people; in a pipe, tabs for programs. Clients choose some texts, so no character controls the terminal. */
export function printTable(rows: unknown[][]): void {
  const cells = rows.map((row) => row.map((cell) => oneLine(String(cell))));
  const lines = process.stdout.isTTY ? aligned(cells) : cells.map((row) => row.join('\t'));
  for (const line of lines) print(line);
}
