import type { Logger } from 'pino';

/** How to run a program that must outlive a crash of this process and be found again by the next one. */
export interface DaemonOptions {
  /** For logs, e.g. `ganesha`. */
  name: string;
  command: { file: string; args: string[]; env?: Record<string, string>; uid?: number; gid?: number; cwd?: string };
  /** Written here after the start, unless `readPid` says that the program writes its own. */
  pidFile: string;
  /** True when the command line of a live process shows that it is this daemon with this data. */
  matches(commandLine: string): boolean;
  /** Resolves when the daemon answers; rejects while it does not yet. Polled. */
  probe(): Promise<void>;
  /** How long `probe` may fail before the start has failed, seconds. */
  startTimeout: number;
  /** Appended to; truncated at start past 10 MiB. */
  logFile: string;
  stopSignal: NodeJS.Signals;
  /** Called after an unasked exit, before the next try: clean what the dead left behind. */
  beforeStart?(): Promise<void>;
  log: Logger;
}

export interface Daemon {
  /** The pid, or null while it is down. */
  pid(): number | null;
  signal(signal: NodeJS.Signals): void;
  /** Ends the supervision and the process: `stopSignal`, then SIGKILL after 10 s. */
  stop(): Promise<void>;
}

export declare function superviseDaemon(options: DaemonOptions): Promise<Daemon>;
