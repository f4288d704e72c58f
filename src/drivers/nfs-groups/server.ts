/**
 * The Ganesha of one group on this host.
 *
 * Invariants: before each start, also after a crash, `beforeStart` fences the servers that ran before. Ganesha ends with this
 * process (PR_SET_PDEATHSIG), because only this process renews the lock of the group, and a watcher ends it when the lock was
 * not renewed, because this process may be frozen. It is ended with SIGKILL: what clients were promised is in the cluster, and
 * clients send the rest again.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeDeadline } from '../../platform/deadline-file.ts';
import { superviseDaemon, type Daemon, type DaemonOptions } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import { isRunning, processIn } from '../../platform/running-processes.ts';
import { hostError } from '../command.ts';
import { confined } from '../confined.ts';
import { writeDurably } from '../durable-files.ts';
import { reloadGanesha } from '../ganesha/server.ts';
import type { Reload } from '../ganesha/reload-log.ts';
import { callNull, NFS4 } from '../rpc.ts';
import { renderClientConf, renderGroup, type GroupSettings } from './configuration.ts';
import { exportSizes, probeExports } from './probe.ts';
import type { PublishedShare } from './share-state.ts';

interface GroupServerOptions {
  settings: GroupSettings;
  folder: string;
  /** The path of ganesha.nfsd. */
  program: string;
  /** Arguments of `ip` that remove the address of the group. */
  removal: string[];
  /** Before each start: fences the servers that ran before. @throws if this host does not hold the group any more */
  beforeStart(): Promise<void>;
  log: Logger;
}

/**
 * Ends Ganesha when its time is over although the agent does not: it may be frozen. Then it also removes the address, for which
 * this host would go on answering. If Ganesha has ended before, and nobody renews the time, the agent is dead, and the address
 * is removed, too. $0: the file with the time, in hundredths of a second of /proc/uptime; $1: arguments of `ip`.
 * Without a readable time Ganesha ends, too.
 */
const WATCHED = `removal=$1; shift
(ended=
while :; do
  [ "$ended" ] || kill -0 $$ 2>/dev/null || ended=at
  until=; read -r until < "$0"
  read -r now rest < /proc/uptime
  case $ended in at) ended=at:$until ;; ?*) [ "$ended" = "at:$until" ] || exit ;; esac
  [ "\${now%.*}\${now#*.}" -lt "$until" ] || { [ "$ended" ] || kill -9 $$; ip $removal; exit; }
  sleep 0.25
done) & exec "$@"`;

/** Runs a program that ends, and with it the address, when the time in the file `validUntil` is over. */
export const watched = (validUntil: string, removal: string[], command: string[]) => ({
  file: 'sh',
  args: ['-c', WATCHED, validUntil, removal.join(' '), ...command],
});

const endWithParent = ['setpriv', '--pdeathsig', 'KILL'];
/** It serves with the user ids of its clients, but the cluster checks them. */
const CAPABILITIES = ['net_bind_service', 'sys_resource', 'setuid', 'setgid', 'dac_override'];
const START_SECONDS = 60;
const FIRST_PROBE_MS = 20_000;
const PROBE_TIMEOUT_MS = 3000;
const PROBE_EVERY_MS = 50;

/** Runs nothing before `start`. It cannot be started again after `kill`. */
export function groupServer(options: GroupServerOptions) {
  const { settings, folder } = options;
  const files = filesOf(folder);
  const ending = new AbortController();
  const killed = Promise.withResolvers<void>();
  let daemon: Daemon | null = null;
  let isStarting = false;
  let exported: string[] = [];

  const write = async (shares: ReadonlyMap<string, PublishedShare>) => {
    await writeDurably(files.configuration, renderGroup(settings, shares));
    exported = [...shares.keys()];
  };
  const refuseEnded = () => {
    if (ending.signal.aborted) throw hostError(`the server of ${settings.group} is being stopped`, null);
  };
  const callServer = () => callNull({ host: settings.group, port: settings.port }, NFS4);
  const target = { address: settings.group, port: settings.port, timeoutMs: PROBE_TIMEOUT_MS };
  const probe = () => probeExports(target, exported);

  return {
    /** Resolves when an export responds, with the shares that do. */
    async start(shares: ReadonlyMap<string, PublishedShare>): Promise<Set<string>> {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await killServer(folder);
      const conf = await readFile(settings.cephConf, 'utf8');
      await writeDurably(files.clientConf, renderClientConf(conf, settings));
      await write(shares);
      daemon = await supervise(options, {
        probe: callServer,
        async beforeStart() {
          refuseEnded();
          isStarting = true;
          // It needs the cluster, and `kill` must not wait for that.
          await Promise.race([options.beforeStart(), killed.promise]);
          refuseEnded();
        },
        onRestart: () => void (isStarting = false),
      });
      isStarting = false;
      if (ending.signal.aborted) await daemon.stop();
      refuseEnded();
      return untilHealthy(probe, ending.signal);
    },
    /** Brings the exports to these. @throws DriverError unless Ganesha has confirmed its configuration */
    async reload(shares: ReadonlyMap<string, PublishedShare>): Promise<Reload> {
      await write(shares);
      return reloadGanesha(() => daemon, callServer, files.log);
    },
    /** The shares that respond. @throws if the server does not respond */
    probe,
    /** The sizes that these exports show to clients, bytes. Exports that do not respond are missing. */
    sizes: (ids: string[]) => exportSizes(target, ids),
    /** Whether it has started and not ended. */
    isUp: () => daemon !== null && !isStarting && daemon.pid() !== null,
    /** Ganesha ends after this time, unless another call extends it. */
    mayServeFor(ms: number): void {
      const hundredths = Math.floor(uptime() * 100 + ms / 10);
      writeDeadline(files.validUntil, String(hundredths));
    },
    /** The supervisor starts it again. */
    restart: () => daemon?.signal('SIGKILL'),
    /** Ends it permanently; resolves when the process has ended. Needs no network. */
    async kill(): Promise<void> {
      ending.abort();
      killed.resolve();
      // It fails without descriptors, and the end of a server that has started needs none.
      await killServer(folder).catch((err: unknown) => options.log.error({ err, folder }, 'cannot find an NFS server'));
      await daemon?.stop();
    },
  };
}

export type GroupServer = ReturnType<typeof groupServer>;

/** Starts Ganesha with a watcher, and again whenever it ends. */
function supervise(
  { settings, folder, program, removal, log }: GroupServerOptions,
  hooks: Pick<DaemonOptions, 'probe' | 'beforeStart' | 'onRestart'>,
): Promise<Daemon> {
  const files = filesOf(folder);
  const args = ['-F', '-f', files.configuration, '-L', 'STDERR', '-p', files.ownPid];
  const { file, args: rest } = confined({ file: program, args }, null, CAPABILITIES);
  return superviseDaemon({
    name: `ganesha ${settings.group}`,
    command: {
      ...watched(files.validUntil, removal, [...endWithParent, '--', file, ...rest]),
      env: { TMPDIR: folder },
    },
    pidFile: files.pid,
    matches: (commandLine) => isServer(commandLine, files),
    startTimeout: START_SECONDS,
    logFile: files.log,
    stopSignal: 'SIGKILL',
    ...hooks,
    log,
  });
}

/** The folder of a group's server. `group`: its address. */
export function filesIn(dataDir: string, group: string): string {
  return join(dataDir, 'nfs-groups', group.replaceAll(':', '_'));
}

function filesOf(folder: string) {
  const file = (name: string) => join(folder, name);
  return {
    configuration: file('ganesha.conf'),
    clientConf: file('ceph.conf'),
    log: file('ganesha.log'),
    pid: file('ganesha.pid'),
    validUntil: file('valid-until'),
    // Ganesha locks it, and it must not be that of another group.
    ownPid: file('ganesha.lock'),
  };
}

function isServer(commandLine: string, files: ReturnType<typeof filesOf>): boolean {
  return commandLine.includes('ganesha.nfsd') && commandLine.includes(` -f ${files.configuration} `);
}

/** Ends the server of a folder, also one that is starting or that an earlier process of Cloudyard started. */
export async function killServer(folder: string): Promise<void> {
  const files = filesOf(folder);
  const found = processIn(files.pid);
  if (!found || !isServer(found.commandLine, files)) return;
  process.kill(found.pid, 'SIGKILL');
  while (isRunning(found)) await sleep(5);
  await rm(files.pid, { force: true });
}

async function untilHealthy(probe: () => Promise<Set<string>>, ending: AbortSignal): Promise<Set<string>> {
  const deadline = performance.now() + FIRST_PROBE_MS;
  for (let reason = 'no export responds'; ; await sleep(PROBE_EVERY_MS)) {
    const healthy = await probe().catch((err: unknown) => {
      reason = (err as Error).message;
    });
    if (healthy && healthy.size > 0) return healthy;
    if (ending.aborted || performance.now() > deadline)
      throw hostError(`NFS-Ganesha started but does not serve: ${reason}`, null);
  }
}
