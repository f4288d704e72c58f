/**
 * Every error that a client can get. A code is `exception_class` in the body and a heading in docs/errors.md;
 * test/errors.test.ts holds the two together.
 */
export const catalogue = {
  InvalidInput: { status: 400, meaning: 'Something in the request is wrong; `errors` names every field at fault.' },
  Unauthenticated: { status: 401, meaning: 'No token (or API key) was given, or it is unknown, expired or revoked.' },
  Forbidden: { status: 403, meaning: 'The token (or API key) is good but does not allow this.' },
  NotFound: { status: 404, meaning: 'There is no such thing, or it is not visible to this client.' },
  ResourceLocked: {
    status: 409,
    meaning: 'A task is working on the resource; the message names it. Try again when it ended.',
  },
  NameTaken: { status: 409, meaning: 'Another resource of the kind has this name.' },
  InUse: { status: 409, meaning: 'Something still uses the resource; the message names it.' },
  Conflict: { status: 409, meaning: 'The resource is in a state that does not allow this.' },
  QuotaExceeded: { status: 409, meaning: 'The request would pass a quota; the message and `errors` give the figures.' },
  IdempotencyKeyReused: { status: 409, meaning: 'The `Idempotency-Key` was used for another request within 24 hours.' },
  BodyTooLarge: { status: 413, meaning: 'The body is larger than the operation accepts; the message gives the limit.' },
  UnsupportedMediaType: { status: 415, meaning: 'The body is not `application/json`.' },
  TooManyRequests: {
    status: 429,
    meaning:
      'The client, or the address without a valid credential, exceeds a limit; the message names it. See `Retry-After`.',
  },
  Internal: { status: 500, meaning: 'A fault of Cloudyard. The log has the details under the `request_id`.' },
  Unavailable: {
    status: 503,
    meaning:
      "The database, or the region's worker, cannot be reached just now, or the address has too many connections; see " +
      '`Retry-After`.',
  },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ErrorCode = keyof typeof catalogue;

/** One field at fault. `path` is where it stands: `network.network_id`, `tags`, `project_id`. */
export interface FieldError {
  path: string;
  message: string;
}

/** Conflicts that time alone does not cure: clients are told not to retry them by themselves. */
const final = new Set<ErrorCode>(['NameTaken', 'InUse', 'Conflict', 'QuotaExceeded', 'IdempotencyKeyReused']);

/** An error for the client. `message` is for the customer; `cause` and `fields` are for the operator's log only. */
export class ClientError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly errors: FieldError[];
  readonly headers: Record<string, string>;
  constructor(
    code: ErrorCode,
    message: string,
    options: { errors?: FieldError[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'ClientError';
    this.code = code;
    this.status = catalogue[code].status;
    this.errors = options.errors ?? [];
    this.headers = { ...(final.has(code) && { 'x-should-retry': 'false' }), ...options.headers };
  }
}

/** What an error lists at most. */
export const maxErrors = 100;

/** 400 with the fields at fault. */
export function invalidInput(all: FieldError[]): ClientError {
  const errors = all.slice(0, maxErrors);
  const message = errors.map((e) => (e.path ? `${e.path}: ${e.message}` : e.message)).join('; ');
  return new ClientError('InvalidInput', message, { errors });
}

/** 404, worded the same whether the thing does not exist or is another client's. */
export function notFound(what: string, id: string | number): ClientError {
  return new ClientError('NotFound', `${what} ${id} was not found`);
}

/** 409 naming the task that holds the lock. */
export function resourceLocked(what: string, id: string, taskId: string): ClientError {
  return new ClientError(
    'ResourceLocked',
    `${what} ${id} is locked by task ${taskId}; try again when that task has ended`,
    {
      errors: [{ path: 'task_id', message: taskId }],
    },
  );
}

/** Things of one kind that use something: how many, and some of their ids. */
export interface Uses {
  kind: string;
  count: number;
  ids: string[];
}

/** 409 naming what must go first. */
export function inUse(what: string, id: string | number, uses: Uses[]): ClientError {
  const users = uses.map(usesInWords).join(', ') || 'another resource';
  return new ClientError('InUse', `${what} ${id} is in use by ${users}; delete what uses it first`);
}

/** `2 networks (<id>, <id>)` */
function usesInWords({ kind, count, ids }: Uses): string {
  return `${count} ${kind}${count === 1 ? '' : 's'} (${ids.join(', ')}${count > ids.length ? ', …' : ''})`;
}
