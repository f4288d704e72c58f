/**
 * A failure on a host. `message` is for the operator; `customerMessage` is the sentence that the task shows. `retryable`:
 * whether a retry may succeed (a busy device) or not (no space left on the host).
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
