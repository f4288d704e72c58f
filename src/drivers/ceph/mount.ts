/**
 * A directory of a CephFS on this host, mounted by ceph-fuse. The daemon survives a crash of the worker and is adopted by the
 * next one.
 *
 * Failure modes: a mount whose client was evicted (it was away for longer than the metadata servers wait) fails every call or
 * blocks. It is checked, and mounted again; programs that work in it must then start again, too (`onRemount`).
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import { exitStatus, run, timedOut } from '../command.ts';
import { type BridgeOptions, createCephBridge } from './bridge.ts';
import { ensureSubvolume } from './subvolumes.ts';

interface CephMountOptions extends Pick<BridgeOptions, 'conf' | 'user' | 'log'> {
  filesystem: string;
  /** The subvolume, which is created if it does not exist. */
  subvolume: string;
  /** Where it is mounted. */
  target: string;
  /** The folder of the PID file and the log. */
  state: string;
  onRemount(): void;
}

const CHECK_MS = 10_000;
const CHECK_SECONDS = 5;
/** Checks that may fail in a row, because a failover of metadata servers takes seconds. */
const MAX_FAILURES = 3;

/** Mounts nothing before `open`. */
export function createCephMount(options: CephMountOptions) {
  const { target, state, onRemount, log } = options;
  let daemon: Daemon | null = null;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  const check = async () => {
    const works = await mountWorks(target, CHECK_SECONDS);
    failures = works ? 0 : works === null ? failures : failures + 1;
    if (failures < MAX_FAILURES) return;
    failures = 0;
    log.warn({ target }, 'the mount does not respond and is mounted again');
    daemon?.signal('SIGKILL');
  };
  const end = async (how: 'stop' | 'release') => {
    clearInterval(timer);
    const ended = daemon;
    daemon = null;
    await ended?.[how]();
  };
  return {
    isMounted: () => daemon !== null && daemon.pid() !== null,
    /** Resolves when the directory is mounted. @throws Error */
    async open(): Promise<void> {
      if (daemon) return;
      const path = await subvolumePath(options);
      await mkdir(state, { recursive: true, mode: 0o700 });
      await mkdir(target, { recursive: true }).catch(() => undefined);
      daemon = await superviseDaemon({
        name: 'ceph-fuse',
        command: { file: 'ceph-fuse', args: argumentsOf(options, path) },
        pidFile: join(state, 'ceph-fuse.pid'),
        logFile: join(state, 'ceph-fuse.log'),
        matches: (commandLine) => commandLine.startsWith('ceph-fuse ') && commandLine.endsWith(` ${target}`),
        probe: async () => void (await run('mountpoint', ['-q', target], { timeout: CHECK_SECONDS })),
        startTimeout: 30,
        beforeStart: () => unmount(target),
        onRestart: onRemount,
        log,
      });
      timer = setInterval(() => void check(), CHECK_MS).unref();
    },
    /** Unmounts it, also if it does not respond. */
    async close(): Promise<void> {
      await end('stop');
      await unmount(target);
    },
    /** Leaves it mounted, for the next process to adopt. */
    release: () => end('release'),
  };
}

export type CephMount = ReturnType<typeof createCephMount>;

function argumentsOf({ conf, user, filesystem, state, target }: CephMountOptions, path: string): string[] {
  const log = ['--log-file', join(state, 'ceph-fuse-client.log')];
  // An evicted client connects again by itself, if nothing of it was written meanwhile.
  const settings = ['--client_fs', filesystem, '--client_reconnect_stale', 'true'];
  return ['-f', '-n', `client.${user}`, '-c', conf, '-r', path, ...settings, ...log, target];
}

/** Null if the check itself was killed or did not start, so that the mount may work. */
export async function mountWorks(target: string, seconds: number): Promise<boolean | null> {
  return run('stat', ['--file-system', target], { timeout: seconds }).then(
    () => true,
    (error: unknown) => (exitStatus(error) !== null || timedOut(error) ? false : null),
  );
}

/** Also of a mount whose daemon died. */
async function unmount(target: string): Promise<void> {
  await run('umount', ['--lazy', target]).catch(() => undefined);
}

async function subvolumePath({ conf, user, filesystem, subvolume, log }: CephMountOptions): Promise<string> {
  const bridge = createCephBridge({ conf, user, log });
  try {
    await bridge.start();
    return await ensureSubvolume(bridge, filesystem, subvolume);
  } finally {
    await bridge.stop();
  }
}
