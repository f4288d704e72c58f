/**
 * Starts child processes. No other module of the server does, except server-processes.ts, which starts this program again
 * (child-process.test.ts enforces it).
 *
 * Invariant: a child gets the variables in INHERITED and those that its caller names. The environment of this process
 * contains the bootstrap token, DATABASE_URL and passwords, and the account of a child can read /proc/<pid>/environ.
 *
 * Arguments are public: every account of the host can read /proc/<pid>/cmdline, so they must not contain secrets. With
 * `uid` and `gid`, libuv also drops the supplementary groups of this process.
 */
import {
  type ChildProcess,
  execFile,
  type ExecFileOptions,
  execFileSync,
  type ExecFileSyncOptions,
  spawn,
  type SpawnOptions,
} from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

/** Paths of programs and libraries, locale, time zone and the directory for temporary files. */
const INHERITED = /^(PATH|LD_LIBRARY_PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/;

type WithVariables<Options> = Omit<Options, 'env' | 'shell'> & { env?: Record<string, string> };

/** The environment of a child: the inherited variables and `own`. */
export function childEnvironment(own: Record<string, string> = {}): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => INHERITED.test(name));
  return { ...(Object.fromEntries(inherited) as Record<string, string>), ...own };
}

/** `spawn` of Node with the variables that children may have. */
export function spawnChild(file: string, args: string[], options: WithVariables<SpawnOptions> = {}): ChildProcess {
  return spawn(file, args, { ...options, env: childEnvironment(options.env) });
}

/** As `spawnChild`; rejects with Node's error if the child does not start. Without descriptors such a child has no pipes. */
export async function startChild(
  file: string,
  args: string[],
  options: WithVariables<SpawnOptions> = {},
): Promise<ChildProcess> {
  const child = spawnChild(file, args, options);
  await once(child, 'spawn');
  return child;
}

/** Resolves with the output of the child; rejects with Node's error, which also has `stdout` and `stderr`. */
export function runChild(
  file: string,
  args: string[],
  options: WithVariables<ExecFileOptions> = {},
): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(file, args, { ...options, env: childEnvironment(options.env), encoding: 'utf8' });
}

/** Returns the standard output of the child; throws Node's error, which also has `stderr`. */
export function runChildSync(file: string, args: string[], options: WithVariables<ExecFileSyncOptions> = {}): string {
  return execFileSync(file, args, {
    stdio: 'pipe',
    maxBuffer: 16 * 1024 * 1024,
    ...options,
    env: childEnvironment(options.env),
    encoding: 'utf8',
  });
}

/**
 * Disables core dumps of this process and its future children, because memory contains keys and passwords. If the host has
 * no `prlimit` or forbids it, the limit is unchanged and the start continues.
 *
 * One byte, not 0: the kernel writes no file that is smaller than a page, and only with a limit of 1 it also does not pass
 * the memory to a program that `kernel.core_pattern` names, such as systemd-coredump (core(5)).
 */
export function forbidCoreDumps(): void {
  try {
    runChildSync('prlimit', ['--pid', String(process.pid), '--core=1:1']);
  } catch {
    // The limit is unchanged.
  }
}
