/** What an error of PostgreSQL or of its connection means. */
import pg from 'pg';
import { isConnectionError, readOnly } from './primary-client.ts';

const serializationFailure = '40001';
const deadlock = '40P01';
/** What the work read, outside of the transaction or without a lock, was deleted before it was referred to. */
export const foreignKeyViolation = '23503';
const retried = new Set<string | undefined>([serializationFailure, deadlock, foreignKeyViolation]);

/** Whether the same transaction may succeed at once. */
export function isRetryable(error: unknown): boolean {
  return retried.has(postgresCode(error));
}

/** The SQLSTATE of a PostgreSQL error, which Drizzle may have wrapped. */
export function postgresCode(error: unknown): string | undefined {
  return postgresError(error)?.code;
}

/** The constraint that a statement violated, for example `projects_client_id_name`. */
export function violatedConstraint(error: unknown): string | undefined {
  return postgresError(error)?.constraint;
}

const postgresError = (error: unknown) => causesOf(error).find((cause) => cause instanceof pg.DatabaseError);

/** The error and its causes. */
export function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

const connectionCodes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'ECONNABORTED', 'EAI_AGAIN'],
  // Of a unix socket whose queue of connections is full, as while the server is frozen.
  'EAGAIN',
]);
/** What this host lacks to open a connection, by the code of the system call. */
const hostShortages: Record<string, string> = {
  EMFILE: 'this server has no file descriptors left',
  ENFILE: 'this host has no file descriptors left',
  ENOBUFS: 'this host is out of memory',
  ENOMEM: 'this host is out of memory',
  EADDRNOTAVAIL: 'this host has no local ports left',
};
/** Of a pool whose connections are all in use, or about to be opened. */
const noFreeConnection = 'timeout exceeded when trying to connect';
/** Beginnings of errors of `pg` itself, which have no code. */
const brokenConnection = [
  ...['Connection terminated', 'Client has encountered a connection error', 'Client was closed'],
  ...[noFreeConnection, 'timeout expired', 'Query read timeout'],
];

/** Whether no connection of the pool was free in time. The database may respond to those that have one. */
export function lacksFreeConnection(error: unknown): boolean {
  return causesOf(error).some(({ message }) => message === noFreeConnection);
}

/** Whether `pg` could not connect or lost its connection, without an error of the system. */
export function isBrokenConnection({ message }: Error): boolean {
  return brokenConnection.some((each) => message.startsWith(each));
}

/** What this host lacks to open a connection, for example `this host is out of memory`; or null. */
export function hostShortageOf(error: unknown): string | null {
  const shortages = causesOf(error).map(({ code = '' }: NodeJS.ErrnoException) => hostShortages[code]);
  return shortages.find((each) => each !== undefined) ?? null;
}

/** What a database that responds lacks, by SQLSTATE (class 53, and 58030). */
const shortages: Record<string, string> = {
  // Of a system call that failed with EMFILE or ENFILE.
  '53000': 'has no file descriptors left',
  '53100': 'has no space left on its disk',
  '53200': 'is out of memory',
  '53300': 'has too many connections',
  '53400': 'has reached a configured limit',
  '58030': 'cannot access its disk',
};

const internalError = 'XX000';
/** PostgreSQL has no SQLSTATE for it. Its message ends with that of the system, in the language of the server. */
const overQuota = /: Disk quota exceeded$/;
/**
 * Functions of PostgreSQL that save the cache of the catalog for later sessions. A session that begins on a full disk fails in
 * them, in older versions (15) as an internal error.
 */
const savesCatalogCache = new Set<string | undefined>(['write_item', 'write_relcache_init_file']);

/** Why the database could not run a statement although it responds, for example `has no space left on its disk`; or null. */
export function shortageOf(error: unknown): string | null {
  const { code = '', message = '', routine } = postgresError(error) ?? {};
  if (code !== internalError) return shortages[code] ?? null;
  if (overQuota.test(message)) return 'has exceeded its disk quota';
  return savesCatalogCache.has(routine) ? 'cannot write to its disk' : null;
}

/** Statement timeouts, and the serialization failures and deadlocks that the retries of `transaction` did not resolve. */
const contention = new Set<string | undefined>([serializationFailure, deadlock, '57014']);

/** Whether PostgreSQL cancelled a statement because of a concurrent one, or because it took too long. */
export function isContended(error: unknown): boolean {
  return contention.has(postgresCode(error));
}

/**
 * Settings of PostgreSQL that limit the time of a statement or transaction, by the SQLSTATE of what exceeds them. A session that
 * is idle in a transaction for too long (25P03) is not one of them: its process was frozen, and Cloudyard sets that limit (db.ts).
 */
const timeLimits: Record<string, string> = {
  '57014': 'statement_timeout',
  '55P03': 'lock_timeout',
  '25P04': 'transaction_timeout',
};

/** The setting of PostgreSQL whose time limit was exceeded, for example `statement_timeout`; or null. */
export function exceededTimeLimit(error: unknown): string | null {
  return timeLimits[postgresCode(error) ?? ''] ?? null;
}

/** Of a server that starts up or shuts down, and of one whose connections are all in use. */
const busy = new Set<unknown>(['57P01', '57P03', '53300']);

/** Whether a server runs that refused the connection, ended it, or did not respond in time. It may accept a later one. */
export function isBusy(error: unknown): boolean {
  return causesOf(error).some((cause: NodeJS.ErrnoException) => {
    // A full queue of a unix socket. The start of a program has the same code.
    const isQueueFull = cause.code === 'EAGAIN' && cause.syscall === 'connect';
    return busy.has(cause.code) || isQueueFull || isBrokenConnection(cause);
  });
}

/**
 * Of connections that PostgreSQL refuses until an operator acts: for the role or its password, and because the database does
 * not exist or does not allow connections, for example while it is replaced.
 */
const refused = new Set(['28000', '28P01', '3D000', '55000']);

/**
 * True when the database could not be reached, refused or broke the connection, is starting, lacks resources, or cancelled the
 * statement, or when this host lacks resources for a connection: a retry may succeed.
 */
export function isUnavailable(error: unknown): boolean {
  if (shortageOf(error) !== null || isContended(error) || hostShortageOf(error) !== null) return true;
  return causesOf(error).some((cause) => {
    // A DOMException, such as the reason of an aborted signal, has a number.
    const code = String((cause as { code?: unknown }).code ?? '');
    // Class 08: connection; 57P01..5: shutdown, crash, starting up, database dropped, idle session ended; 25P03..4: transaction
    // ended; 25006: a former primary.
    if (/^(08|57P0[1-5]$|25P0[34]$)/.test(code) || refused.has(code) || code === readOnly) return true;
    return connectionCodes.has(code) || isBrokenConnection(cause) || isConnectionError(cause);
  });
}

/** The same, but false when this host lacks resources: the work itself may lack them too, and the operator must see that. */
export const isDatabaseAway = (error: unknown) => isUnavailable(error) && hostShortageOf(error) === null;
