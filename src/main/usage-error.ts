/** The command line is wrong. `usage` is the usage line to print below the message. */
export class UsageError extends Error {
  readonly usage: string | undefined;
  constructor(message: string, options: { usage?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.usage = options.usage;
  }
}
