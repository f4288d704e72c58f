/**
 * A failure on a host. `message` is for the operator; `customerMessage` is the sentence that the task shows. `retryable`:
 * whether a retry may succeed (a busy device) or not (an invalid setting). `shortage`: the host lacks space, memory or
 * descriptors, or its driver did not start, which is retryable, and for longer, because an operator has to act.
 */
export class DriverError extends Error {
  readonly customerMessage: string;
  readonly retryable: boolean;
  readonly shortage: boolean;
  constructor(
    message: string,
    options: { customerMessage: string; retryable: boolean; shortage?: boolean; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.name = 'DriverError';
    this.customerMessage = options.customerMessage;
    this.retryable = options.retryable;
    this.shortage = options.shortage ?? false;
  }
}
