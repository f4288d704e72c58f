interface FieldError {
  /** Path of the field, such as `listeners.0.protocol_port`. */
  readonly path: string;
  readonly message: string;
}

/** A response that is not a success, with the server's message and the fields at fault. */
export class ApiError extends Error {
  readonly status: number;
  readonly requestId: string | null;
  readonly fields: readonly FieldError[];

  constructor(status: number, body: unknown) {
    const known = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
    super(
      typeof known['message'] === 'string' ? known['message'] : `the server or a proxy responded with status ${status}`,
    );
    this.status = status;
    this.requestId = typeof known['request_id'] === 'string' ? known['request_id'] : null;
    this.fields = Array.isArray(known['errors']) ? (known['errors'] as FieldError[]) : [];
  }
}

/** The request did not reach the server, or its response did not arrive. */
export class ConnectionError extends Error {
  constructor(message = 'the server is not reachable; check the connection and try again') {
    super(message);
  }
}

/** Converts what a browser throws for a response that was cut, or that a proxy or a login page of a network sent. */
export function toConnectionError(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  return new ConnectionError('the response of the server is incomplete or not valid; try again');
}

/** Text of any failure, for people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
