/**
 * A daemon that reads its settings at its start only, so they are part of its configuration's name. It outlives a crash
 * of ours and is adopted, pushes and pulls undisturbed, unless it runs with other settings than are asked for now: then
 * it is ended first.
 */
import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Daemon,
  type DaemonOptions,
  type LiveProcess,
  liveProcess,
  superviseDaemon,
} from '../../platform/daemon.ts';
import { hostError } from '../command.ts';
import { type Owner, writeDurably } from '../durable-files.ts';
import { namesIn } from './layout.ts';

export interface ConfiguredDaemon
  extends Pick<DaemonOptions, 'name' | 'probe' | 'beforeStart' | 'startTimeout' | 'log'> {
  /** Where its pid and log are kept. */
  folder: string;
  /** Where its files are written; `folder` unless given. */
  configuration?: string;
  /** The account that reads its files. */
  owner?: Owner | null;
  settings: unknown;
  /** What to write before the start, by file name; each begins with `name`. */
  files(name: string): Record<string, string>;
  /** The last argument is one of the files. */
  command(name: string): DaemonOptions['command'];
}

/** Writes the settings down, ends one that runs with others, and starts or adopts. @throws DriverError */
export async function startConfigured(options: ConfiguredDaemon): Promise<Daemon> {
  const { name, folder, configuration = folder, log } = options;
  const hash = createHash('sha256').update(JSON.stringify(options.settings)).digest('hex').slice(0, 12);
  const own = `${name}-${hash}`;
  const command = options.command(own);
  const pidFile = join(folder, `${name}.pid`);
  const file = command.args.at(-1)!;
  try {
    const folders = new Set([folder, configuration]);
    await endOther(pidFile, folders, file, options);
    for (const each of folders) {
      for (const old of await namesIn(each)) {
        const isOurs = each === configuration && old.startsWith(own);
        if (new RegExp(`^(${name}-)?[0-9a-f]{12}\\.`).test(old) && !isOurs) await rm(join(each, old));
      }
    }
    for (const [path, text] of Object.entries(options.files(own))) {
      await writeDurably(join(configuration, path), text, options.owner);
    }
    return await superviseDaemon({
      ...options,
      command,
      pidFile,
      matches: (commandLine) => isOn(commandLine, file),
      logFile: join(folder, `${name}.log`),
      stopSignal: 'SIGTERM',
      log,
    });
  } catch (error) {
    throw hostError(`${name} does not start: ${(error as Error).message}`, error);
  }
}

async function endOther(
  pidFile: string,
  folders: Iterable<string>,
  file: string,
  { name, log }: ConfiguredDaemon,
): Promise<void> {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  const found = liveProcess(pid);
  if (!found || ![...folders].some((folder) => found.commandLine.includes(` ${folder}/`))) return;
  if (isOn(found.commandLine, file)) return;
  log.warn({ pid }, `ending a ${name} that runs with other settings`);
  process.kill(pid, 'SIGTERM');
  for (let tries = 0; tries < 200 && isAlive(found); tries += 1) await sleep(50);
  if (isAlive(found)) process.kill(pid, 'SIGKILL');
}

function isOn(commandLine: string, file: string): boolean {
  return commandLine.endsWith(` ${file}`);
}

function isAlive({ pid, startTime }: LiveProcess): boolean {
  return liveProcess(pid)?.startTime === startTime;
}
