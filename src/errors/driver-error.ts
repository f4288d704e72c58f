/**
 * A failure of the real world. `message` is for the operator; `customerMessage` is the sentence that a task shows.
 * `retryable` tells the engine whether another try may help (a busy device) or not (no space left on the host).
 */
export class DriverError extends Error {
  readonly customerMessage: string;
  readonly retryable: boolean;
  constructor(message: string, options: { customerMessage: string; retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'DriverError';
    this.customerMessage = options.customerMessage;
    this.retryable = options.retryable;
  }
}
