/**
 * The error catalogue. A code is `exception_class` in the body and a heading in docs/errors.md; test/errors.test.ts
 * compares the two.
 */
export const catalogue = {
  InvalidInput: { status: 400, meaning: 'The request is invalid; `errors` names the fields.' },
  Unauthenticated: { status: 401, meaning: 'The token (or API key) is missing, unknown, expired or revoked.' },
  Forbidden: { status: 403, meaning: 'The token (or API key) is valid but does not allow the operation.' },
  NotFound: { status: 404, meaning: 'The resource does not exist or is not visible to this client.' },
  MethodNotAllowed: {
    status: 405,
    meaning: 'The path has no operation with this method; the header `Allow` lists the methods that it has.',
  },
  ResourceLocked: {
    status: 409,
    meaning: 'A task is changing the resource; the message names the task. Try again when it has ended.',
  },
  NameTaken: { status: 409, meaning: 'Another resource has this name.' },
  InUse: { status: 409, meaning: 'Other resources use this resource; the message names them.' },
  Conflict: { status: 409, meaning: 'The state of the resource does not allow the operation.' },
  QuotaExceeded: {
    status: 409,
    meaning: 'The request would exceed a quota; the message and `errors` give the figures.',
  },
  IdempotencyKeyReused: {
    status: 409,
    meaning: 'The `Idempotency-Key` was used for a different request within 24 hours.',
  },
  BodyTooLarge: { status: 413, meaning: 'The body is larger than the operation accepts; the message gives the limit.' },
  UnsupportedMediaType: { status: 415, meaning: 'The body is not `application/json`, or is compressed.' },
  TooManyRequests: {
    status: 429,
    meaning:
      'The client, or an address without a valid credential, exceeds a limit; the message names it. See `Retry-After`.',
  },
  Internal: { status: 500, meaning: 'Internal error. The server log has the details under the `request_id`.' },
  Unavailable: {
    status: 503,
    meaning:
      "The database or the region's worker is not reachable, the database cannot write or is overloaded, the job queue is " +
      'full, or the address has too many open connections; see `Retry-After`.',
  },
  InsufficientStorage: {
    status: 507,
    meaning: 'The host of the region has less free space than its reserve; the message names the host.',
  },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ErrorCode = keyof typeof catalogue;

/** An invalid field. `path` is its place in the request: `network.network_id`, `tags`, `project_id`. */
export interface FieldError {
  path: string;
  message: string;
}

/** Refusals that a retry cannot resolve: the response asks clients not to retry by themselves. */
const final = new Set<ErrorCode>([
  'NameTaken',
  'InUse',
  'Conflict',
  'QuotaExceeded',
  'IdempotencyKeyReused',
  'InsufficientStorage',
]);

/** An error response. `message` and `errors` are for the client; `cause` is only for the log. */
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

/** The most fields that an error lists. */
export const maxErrors = 100;

/** 400 with the invalid fields. */
export function invalidInput(all: FieldError[]): ClientError {
  const errors = all.slice(0, maxErrors);
  const message = errors.map((e) => (e.path ? `${e.path}: ${e.message}` : e.message)).join('; ');
  return new ClientError('InvalidInput', message, { errors });
}

/** @throws ClientError 400 with the invalid fields, if there are any */
export function requireNoErrors(errors: FieldError[]): void {
  if (errors.length > 0) throw invalidInput(errors);
}

/** The errors of values that repeat an earlier one, which is at `first`. Undefined values are ignored. */
export function errorsOfRepeated(
  values: (string | number | undefined)[],
  error: (index: number, first: number) => FieldError,
): FieldError[] {
  const firsts = new Map<string | number | undefined, number>();
  return values.flatMap((value, index) => {
    const first = firsts.get(value) ?? index;
    firsts.set(value, first);
    return value === undefined || first === index ? [] : [error(index, first)];
  });
}

/** 429. Clients repeat the request after `retrySeconds`. */
export function tooManyRequests(message: string, retrySeconds = 1): ClientError {
  return new ClientError('TooManyRequests', message, { headers: { 'retry-after': String(retrySeconds) } });
}

/** 503. Clients repeat the request after `retrySeconds`. */
export function unavailable(
  message: string,
  { retrySeconds = 1, cause }: { retrySeconds?: number; cause?: unknown } = {},
) {
  return new ClientError('Unavailable', message, { headers: { 'retry-after': String(retrySeconds) }, cause });
}

/** 404, with the same words whether the resource does not exist or belongs to another client. */
export function notFound(what: string, id: string | number): ClientError {
  return new ClientError('NotFound', `${what} ${id} not found`);
}

/** `paths`: the fields with the names. */
export function nameTaken(message: string, paths = ['name']): ClientError {
  return new ClientError('NameTaken', message, { errors: paths.map((path) => ({ path, message: 'is taken' })) });
}

/** 409 that names the task, and `use`: what it does with the resource. */
export function resourceLocked(what: string, id: string, taskId: string, use = 'locked'): ClientError {
  const message = `${what} ${id} is ${use} by task ${taskId}; try again when that task has ended`;
  return new ClientError('ResourceLocked', message, { errors: [{ path: 'task_id', message: taskId }] });
}

/** Resources of one kind that use a resource: their number, and some of their ids. */
export interface Uses {
  kind: string;
  count: number;
  ids: string[];
}

/** 409 that names the resources to delete first. */
export function inUse(what: string, id: string | number, uses: Uses[]): ClientError {
  const users = uses.map(usesInWords).join(', ') || 'another resource';
  return new ClientError('InUse', `${what} ${id} is in use by ${users}; delete what uses it first`);
}

/** `2 networks (<id>, <id>)` */
function usesInWords({ kind, count, ids }: Uses): string {
  return `${count} ${count === 1 ? kind : pluralOf(kind)} (${ids.join(', ')}${count > ids.length ? ', …' : ''})`;
}

/** `registries`, `L7 policies`, `API keys` */
function pluralOf(noun: string): string {
  return /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
}
