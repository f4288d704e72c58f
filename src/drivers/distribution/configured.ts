/**
 * A daemon that reads its settings at its start only, so the name of its configuration file contains a hash of them. It
 * survives a crash of the worker and is adopted without interrupting pushes and pulls. If it runs with other settings, it
 * is stopped and started again.
 */
import { hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Daemon, type DaemonOptions, superviseDaemon } from '../../platform/daemon.ts';
import { processIn } from '../../platform/running-processes.ts';
import { onHost } from '../command.ts';
import { ensureDurably, type Owner } from '../durable-files.ts';
import { endProcess } from '../end-process.ts';
import { namesIn } from './layout.ts';

interface ConfiguredDaemon
  extends Pick<DaemonOptions, 'name' | 'account' | 'probe' | 'socket' | 'beforeStart' | 'startTimeout' | 'log'> {
  /** The folder of its PID file and log. */
  folder: string;
  /** The folder of its configuration files. Default: `folder`. */
  configuration?: string;
  /** The account that owns its files. */
  owner?: Owner | null;
  settings: unknown;
  /** The files to write before each start, by file name; each file name begins with `name`. */
  files(name: string): Record<string, string>;
  /** The last argument is one of the files. */
  command(name: string): DaemonOptions['command'];
}

/** Stops a daemon with other settings, writes the files, and starts or adopts the daemon. @throws DriverError */
export function startConfigured(options: ConfiguredDaemon): Promise<Daemon> {
  const { name, folder, configuration = folder, log } = options;
  const hashedName = `${name}-${hash('sha256', JSON.stringify(options.settings)).slice(0, 12)}`;
  const command = options.command(hashedName);
  const pidFile = join(folder, `${name}.pid`);
  const file = command.args.at(-1)!;
  return onHost(`${name} does not start`, async () => {
    const folders = new Set([folder, configuration]);
    await stopOther(pidFile, folders, file, options);
    for (const each of folders) {
      for (const old of await namesIn(each)) {
        const isCurrent = each === configuration && old.startsWith(hashedName);
        if (new RegExp(`^(${name}-)?[0-9a-f]{12}\\.`).test(old) && !isCurrent) await rm(join(each, old));
      }
    }
    return superviseDaemon({
      ...options,
      command,
      async beforeStart() {
        await options.beforeStart?.();
        for (const [path, text] of Object.entries(options.files(hashedName))) {
          await ensureDurably(join(configuration, path), text, options.owner);
        }
      },
      pidFile,
      matches: (commandLine) => runsWith(commandLine, file),
      logFile: join(folder, `${name}.log`),
      log,
    });
  });
}

async function stopOther(
  pidFile: string,
  folders: Iterable<string>,
  file: string,
  { name, log }: ConfiguredDaemon,
): Promise<void> {
  const found = processIn(pidFile);
  if (!found || ![...folders].some((folder) => found.commandLine.includes(` ${folder}/`))) return;
  if (runsWith(found.commandLine, file)) return;
  log.warn({ pid: found.pid }, `stopping ${name}, which runs with other settings`);
  await endProcess(found);
}

function runsWith(commandLine: string, file: string): boolean {
  return commandLine.endsWith(` ${file}`);
}
