/**
 * NFSv3 is only served where an rpcbind answers on 127.0.0.1:111. Where the program is installed and nothing answers, we
 * run it ourselves and stop it with us; a failure of it costs NFSv3 only.
 *
 * Measured (Debian 12, rpcbind 1.2.6): `-h 127.0.0.1` crashes it (double free; it adds that address by itself), so
 * another loopback address is given, which keeps UDP, the port that gets abused for amplification, off the network. TCP 111
 * listens everywhere, as the packaged service does. It registers nothing for other hosts.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Daemon, liveProcess, superviseDaemon } from '../../platform/daemon.ts';
import { confined } from '../confined.ts';
import { callNull, PORTMAPPER } from './rpc.ts';

/** Port 111, and the change to the account `_rpc`, which it makes by itself. */
const CAPABILITIES = ['net_bind_service', 'setuid', 'setgid', 'chown'];
const PATIENCE_MS = 2000;
const ARGUMENTS = ['-f', '-w', '-h', '127.0.0.2'];

export interface Rpcbind {
  /** Whether one answers now, after trying to start ours if none does. */
  ensure(): Promise<boolean>;
  stop(): Promise<void>;
  release(): Promise<void>;
}

export function rpcbindFor(file: string | null, folder: string, log: Logger): Rpcbind {
  const pidFile = join(folder, 'rpcbind.pid');
  let ours: Daemon | null = null;

  const start = (program: string) =>
    superviseDaemon({
      name: 'rpcbind',
      command: { ...confined({ file: program, args: ARGUMENTS }, null, CAPABILITIES), env: { TMPDIR: folder } },
      pidFile,
      matches: isOurs,
      probe: answers,
      startTimeout: 5,
      logFile: join(folder, 'rpcbind.log'),
      stopSignal: 'SIGTERM',
      log,
    });
  return {
    async ensure() {
      if (ours) return isAnswered(PATIENCE_MS);
      if (!(await runsFrom(pidFile)) && (await isAnswered(0))) return true;
      if (!file) return false;
      try {
        ours = await start(file);
        return true;
      } catch (err) {
        // Another process may have started one at the same moment: then ours gave way to it.
        if (await isAnswered(PATIENCE_MS)) return true;
        log.warn({ err }, 'rpcbind does not start, serving NFSv4 alone');
        return false;
      }
    },
    stop: async () => ours?.stop(),
    release: async () => ours?.release(),
  };
}

const answers = () => callNull({ host: '127.0.0.1', port: 111 }, PORTMAPPER);

async function isAnswered(patienceMs: number): Promise<boolean> {
  const giveUp = Date.now() + patienceMs;
  for (;;) {
    try {
      await answers();
      return true;
    } catch {
      if (Date.now() >= giveUp) return false;
      await sleep(50);
    }
  }
}

function isOurs(commandLine: string): boolean {
  return commandLine.endsWith(`rpcbind ${ARGUMENTS.join(' ')}`);
}

async function runsFrom(pidFile: string): Promise<boolean> {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  return isOurs(liveProcess(pid)?.commandLine ?? '');
}
