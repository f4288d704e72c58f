/**
 * A clean Debian root in namespaces of its own (debian-host.py). mmdebstrap makes the root once, in the user's cache; each
 * host is an overlay on it. The kernel ends all processes of a host with its pid namespace.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

export interface DebianHost {
  run(command: string): Promise<{ code: number; output: string }>;
  /** Runs a unit's ExecStart as its user, and waits until it has reported that it is ready. */
  start(unit: string, instance?: string): Promise<{ ready: boolean; output: string }>;
  stop(unit: string, signal: 'TERM' | 'INT'): Promise<{ code: number | null; output: string }>;
  messages(unit: string): Promise<string[]>;
  processes(): Promise<string[]>;
  close(): void;
}

export const debianRoot = join(
  process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
  'cloudyard-ci',
  'debian-bookworm-1',
);
const packages = 'adduser,ca-certificates,libstdc++6,systemd';

/** Why the root is missing: Debian's mirror cannot be reached. Null: it is in `debianRoot`. */
export function prepareDebianRoot(): string | null {
  if (existsSync(debianRoot)) return null;
  mkdirSync(dirname(debianRoot), { recursive: true });
  const unfinished = `${debianRoot}.${process.pid}`;
  const args = ['--quiet', '--variant=minbase', `--include=${packages}`, 'bookworm', unfinished];
  try {
    execFileSync('mmdebstrap', args, { stdio: 'pipe', timeout: 500_000 });
    renameSync(unfinished, debianRoot);
    return null;
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    return `skipped: mmdebstrap failed: ${String((error as { stderr?: Buffer }).stderr)
      .trim()
      .split('\n')
      .at(-1)}`;
  }
}

/** `folder` gets the changes; the root itself is `folder`/root while the host runs. */
export function openDebianHost(folder: string): DebianHost {
  for (const name of ['changes', 'work', 'root']) mkdirSync(join(folder, name));
  const script = [
    `mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/changes,workdir=$2/work" "$2/root"`,
    'for each in dev sys; do mount --rbind /$each "$2/root/$each"; done',
    'mount -t proc proc "$2/root/proc"',
    'mount -t tmpfs tmpfs "$2/root/run"',
    'mount --bind "$2/files" "$2/root/mnt"',
    // A shell reaps the processes that lose their parent.
    'python3 "$3" "$2/root"; exit $?',
  ].join(' && ');
  mkdirSync(join(folder, 'files'), { recursive: true });
  const args = [
    '--mount',
    '--propagation',
    'slave',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
    'sh',
    '-c',
    script,
  ];
  const host = join(import.meta.dirname, 'debian-host.py');
  const child = spawn('unshare', [...args, 'sh', debianRoot, folder, host], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const request = async <Answer>(what: object): Promise<Answer> => {
    child.stdin.write(`${JSON.stringify(what)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error('the Debian host has ended');
    return JSON.parse(value) as Answer;
  };
  return {
    run: (command) => request({ run: command }),
    start: (unit, instance = '') => request({ start: unit, instance }),
    stop: (unit, signal) => request({ stop: unit, signal }),
    messages: async (unit) => (await request<{ messages: string[] }>({ messages: unit })).messages,
    processes: async () => (await request<{ processes: string[] }>({ processes: null })).processes,
    close: () => void child.kill('SIGKILL'),
  };
}
