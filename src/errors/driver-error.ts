/**
 * A failure on a host. `message` is for the operator; `customerMessage` is the sentence that the task shows. `retryable`:
 * whether a retry may succeed (a busy device) or not (an invalid setting). `shortage`: the host lacks space, memory or
 * descriptors, its storage is read-only, or its driver did not start. A shortage is retried for longer, because an operator has
 * to act. `maxRetrySeconds`: the cause may end at any moment (another program has the port), so the operation is retried at
 * least this often, and for as long as in a shortage. `minRetrySeconds`: a receiver of messages asked for this wait.
 */
export class DriverError extends Error {
  readonly customerMessage: string;
  readonly retryable: boolean;
  readonly shortage: boolean;
  readonly maxRetrySeconds: number;
  readonly minRetrySeconds: number;
  constructor(message: string, options: DriverErrorOptions) {
    super(message, { cause: options.cause });
    this.name = 'DriverError';
    this.customerMessage = options.customerMessage;
    this.retryable = options.retryable;
    this.shortage = options.shortage ?? false;
    this.maxRetrySeconds = options.maxRetrySeconds ?? Number.POSITIVE_INFINITY;
    this.minRetrySeconds = options.minRetrySeconds ?? 0;
  }
}

interface DriverErrorOptions {
  customerMessage: string;
  retryable: boolean;
  shortage?: boolean;
  maxRetrySeconds?: number;
  minRetrySeconds?: number;
  cause?: unknown;
}
