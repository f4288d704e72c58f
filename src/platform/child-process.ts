/**
 * Starts processes. No other module of the server does (child-process.test.ts enforces it).
 *
 * Invariant: a child gets the variables in INHERITED and those that its caller names. Our own environment holds the
 * bootstrap token, DATABASE_URL and passwords, and the account that a child runs as can read /proc/<pid>/environ.
 *
 * Arguments are public: every account of the host can read /proc/<pid>/cmdline, so no secret goes there. With `uid` and
 * `gid`, libuv also drops our supplementary groups.
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
import { promisify } from 'node:util';

/** Where programs and their libraries are, how they print, and where they put temporary files. */
const INHERITED = /^(PATH|LD_LIBRARY_PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/;

type WithVariables<Options> = Omit<Options, 'env' | 'shell'> & { env?: Record<string, string> };

/** The environment of a child: what it may inherit, and `own`. */
export function childEnvironment(own: Record<string, string> = {}): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => INHERITED.test(name));
  return { ...(Object.fromEntries(inherited) as Record<string, string>), ...own };
}

export function spawnChild(file: string, args: string[], options: WithVariables<SpawnOptions> = {}): ChildProcess {
  return spawn(file, args, { ...options, env: childEnvironment(options.env) });
}

/** Resolves with what the child wrote; rejects with Node's error, which has `stdout` and `stderr`, too. */
export function runChild(
  file: string,
  args: string[],
  options: WithVariables<ExecFileOptions> = {},
): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(file, args, { ...options, env: childEnvironment(options.env), encoding: 'utf8' });
}

/** Returns what the child wrote to stdout; throws Node's error, which has `stderr`, too. */
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
 * Keeps this process and every child that it starts from now on from writing core dumps: memory holds keys and
 * passwords. A host that has no `prlimit`, or forbids it, keeps its limit: that stops no start.
 */
export function forbidCoreDumps(): void {
  try {
    runChildSync('prlimit', ['--pid', String(process.pid), '--core=0:0']);
  } catch {
    // As above.
  }
}
