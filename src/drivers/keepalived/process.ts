/**
 * The keepalived of this host. It is adopted by the next process, so that addresses stay where they are while the agent
 * restarts.
 *
 * Invariant: an address is on this host only while a keepalived of this folder runs, or until the agent has noticed its
 * death: before each start, the addresses and the processes that a dead keepalived left behind are removed.
 *
 * It logs to a file without details: with them, a transition writes a line for every packet that announces an address, and
 * the transition of 1,000 addresses took 30 s (measured).
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import { isRunning, processIn } from '../../platform/running-processes.ts';
import { onHost } from '../command.ts';
import { confined } from '../confined.ts';
import { endProcess } from '../end-process.ts';

interface KeepalivedProcessOptions {
  folder: string;
  program: string;
  /** Removes the addresses that a dead keepalived left behind, and writes the configuration. */
  beforeStart(): Promise<void>;
  log: Logger;
}

/** Addresses and announcements; its scripts run as root; a high priority. */
export const KEEPALIVED_CAPABILITIES = [
  'net_admin',
  'net_raw',
  'sys_nice',
  'setuid',
  'setgid',
  'kill',
  'dac_read_search',
];
const CHILD_STOP_MS = 2_000;

/** Names this keepalived in its command line, so the folder identifies its processes. */
export const configurationFile = (folder: string) => join(folder, 'keepalived.conf');

/** Runs nothing before `start`. */
export function createKeepalivedProcess(options: KeepalivedProcessOptions) {
  const { folder, log } = options;
  let daemon: Daemon | null = null;
  return {
    /** Starts or adopts it. Returns whether it was adopted. @throws DriverError */
    async start(): Promise<boolean> {
      // A supervision that waits to restart keepalived would start a second one.
      await daemon?.release();
      daemon = null;
      let isAdopted = true;
      daemon = await superviseKeepalived(options, () => {
        isAdopted = false;
      });
      return isAdopted;
    },
    isUp: () => daemon?.pid() != null,
    /** Loads the configuration; routers that are in both keep their state. */
    reload: () => daemon?.signal('SIGHUP'),
    /** Stops it; it gives up its addresses first. */
    async stop(): Promise<void> {
      await daemon?.stop();
      daemon = null;
      await endChild(folder, log);
    },
    release: async () => daemon?.release(),
  };
}

function superviseKeepalived(options: KeepalivedProcessOptions, onStart: () => void): Promise<Daemon> {
  const { folder, program, log } = options;
  const file = configurationFile(folder);
  const ownPid = join(folder, 'own.pid');
  const childPid = join(folder, 'vrrp.pid');
  const args = ['-n', '-l', '-P', '-f', file, '-p', ownPid, '-r', childPid];
  return onHost('cannot start keepalived', () =>
    superviseDaemon({
      name: 'keepalived',
      command: confined({ file: program, args }, null, KEEPALIVED_CAPABILITIES),
      pidFile: join(folder, 'keepalived.pid'),
      matches: (commandLine) => commandLine.includes('keepalived') && commandLine.includes(` -f ${file}`),
      async probe() {
        if (!existsSync(childPid)) throw new Error('not started yet');
      },
      startTimeout: 10,
      logFile: join(folder, 'keepalived.log'),
      stopTimeout: 5,
      async beforeStart() {
        onStart();
        await endChild(folder, log);
        await options.beforeStart();
        for (const each of [ownPid, childPid]) await rm(each, { force: true });
      },
      log,
    }),
  );
}

/** keepalived has two processes; if only the parent died, the child still holds the addresses. */
async function endChild(folder: string, log: Logger): Promise<void> {
  const child = processIn(join(folder, 'vrrp.pid'));
  if (!child?.commandLine.includes(` -f ${configurationFile(folder)}`)) return;
  log.warn({ daemonPid: child.pid }, 'ending a keepalived without its parent');
  await endProcess(child, CHILD_STOP_MS);
  // A killed process may take a moment to end.
  while (isRunning(child)) await sleep(10);
}
