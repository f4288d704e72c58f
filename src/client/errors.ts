/** Exit codes of the client's commands. Scripts rely on them (docs/guides/command-line.md). */
export const exitCodes = { done: 0, failed: 1, usage: 2, timedOut: 3, notFound: 4 } as const;

export class CommandError extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode: number = exitCodes.failed, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

export function usageError(message: string, cause?: unknown): CommandError {
  return new CommandError(message, exitCodes.usage, cause);
}
