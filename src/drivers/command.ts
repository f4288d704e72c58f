/**
 * Runs one external command to completion, without a shell.
 *
 * Failure modes: every failure is a retryable DriverError with the command and its stderr. A host without space, memory or
 * descriptors, or with read-only storage, is a shortage.
 */
import { basename } from 'node:path';
import { runChild } from '../platform/child-process.ts';
import { DriverError } from './driver.ts';

interface CommandOptions {
  signal?: AbortSignal;
  /** Seconds; default 60. */
  timeout?: number;
}

/** Returns the stdout of the command. @throws DriverError */
export async function run(
  file: string,
  args: string[],
  { signal, timeout = 60 }: CommandOptions = {},
): Promise<string> {
  // LC_ALL: `hostError` matches messages, so they must not be translated. SIGKILL also ends a program that is stopped.
  const killSignal = 'SIGKILL' as const;
  const options = { timeout: timeout * 1000, killSignal, signal, maxBuffer: 16 * 1024 * 1024, env: { LC_ALL: 'C' } };
  try {
    return (await runChild(file, args, options)).stdout;
  } catch (cause) {
    const { stderr = '', message } = cause as Error & { stderr?: string };
    throw hostError(`${basename(file)} ${args.join(' ')}: ${stderr.trim() || message}`, cause);
  }
}

/** The status with which a command that failed in `run` exited; null if it did not start or was killed. */
export function exitStatus(error: unknown): number | null {
  const { code } = ((error as Error | null)?.cause ?? {}) as { code?: unknown };
  return typeof code === 'number' ? code : null;
}

/** Whether a command that failed in `run` exceeded its time limit. */
export function timedOut(error: unknown): boolean {
  return ((error as Error | null)?.cause as { killed?: unknown } | undefined)?.killed === true;
}

/** The kernel makes a filesystem read-only after errors of its disk. */
const READ_ONLY = /read-only file ?system/i;
/** How programs report what SHORTAGES are in errors of system calls, and how HAProxy reports a lack of memory. */
const SHORTAGE =
  /no space left on device|disk quota exceeded|cannot allocate memory|(out of|not enough) memory|too many open files/i;

/** Wraps a failed command or system call. */
export function hostError(message: string, cause: unknown): DriverError {
  if (cause instanceof DriverError) return cause;
  const isReadOnly = codeOf(cause) === 'EROFS' || READ_ONLY.test(message);
  const shortage = isReadOnly || SHORTAGES.includes(codeOf(cause)) || SHORTAGE.test(message);
  return new DriverError(message, {
    customerMessage: isReadOnly
      ? 'the storage of the host is read-only; the operator must make it writable'
      : shortage
        ? 'the host has no space or memory left; the operator must add some'
        : 'the host could not apply the change',
    retryable: true,
    shortage,
    cause,
  });
}

/** Runs work on the host. @throws DriverError for every failure; `what` begins its message, unless it is a DriverError already */
export async function onHost<T>(what: string | null, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw hostError(what === null ? message : `${what}: ${message}`, error);
  }
}

/** Call it between the steps of long work. @throws DriverError */
export function refuseAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new DriverError('aborted', {
    customerMessage: 'the work on the host was interrupted',
    retryable: true,
    cause: signal.reason,
  });
}

const SHORTAGES = ['ENOSPC', 'EDQUOT', 'ENOMEM', 'EMFILE', 'ENFILE'];

function codeOf(cause: unknown): string {
  return (cause as NodeJS.ErrnoException | null)?.code ?? '';
}
