/**
 * Runs one external command to its end. No shell: arguments reach the program as they are.
 *
 * How it fails: always with a DriverError that carries the command and what it wrote to stderr. A full host is terminal
 * (another try does not help before an operator frees space); everything else may be tried again.
 */
import { basename } from 'node:path';
import { runChild } from '../platform/child-process.ts';
import { DriverError } from './driver.ts';

export interface CommandOptions {
  signal?: AbortSignal;
  /** Seconds; 60 unless given. */
  timeout?: number;
}

/** Resolves with what the command wrote to stdout. @throws DriverError */
export async function run(
  file: string,
  args: string[],
  { signal, timeout = 60 }: CommandOptions = {},
): Promise<string> {
  // LC_ALL: messages are matched below, so they must not be translated.
  const options = { timeout: timeout * 1000, maxBuffer: 16 * 1024 * 1024, env: { LC_ALL: 'C' } };
  try {
    return (await runChild(file, args, { ...options, ...(signal && { signal }) })).stdout;
  } catch (cause) {
    const { stderr = '', message } = cause as Error & { stderr?: string };
    throw hostError(`${basename(file)} ${args.join(' ')}: ${stderr.trim() || message}`, cause);
  }
}

/** Wraps a failure of the host (a command, a system call) so that the engine knows whether to try again. */
export function hostError(message: string, cause: unknown): DriverError {
  if (cause instanceof DriverError) return cause;
  const full = isNoSpace(cause) || /no space left on device/i.test(message);
  return new DriverError(message, {
    customerMessage: full
      ? 'The storage host has no space left. Ask the operator to add some, then try again.'
      : 'The storage host could not do this just now.',
    retryable: !full,
    cause,
  });
}

/** Between the steps of a longer work. @throws DriverError */
export function refuseAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new DriverError('aborted', {
    customerMessage: 'The work on the host was interrupted.',
    retryable: true,
    cause: signal.reason,
  });
}

function isNoSpace(cause: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((cause as NodeJS.ErrnoException | null)?.code ?? '');
}
