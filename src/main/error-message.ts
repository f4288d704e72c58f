import { isBrokenConnection } from '../platform/db-errors.ts';
import { isConnectionError } from '../platform/primary-client.ts';

/**
 * The message of an error that ends a command. The message of a failed query is the statement and its parameters, which may
 * contain secrets; its cause is the error of PostgreSQL or of the connection. That of `pg`, such as `timeout expired`, or of the
 * system, such as `write EPIPE`, does not say what could not be reached.
 */
export function messageOf(error: Error): string {
  const { cause } = error;
  const isQuery = 'query' in error && 'params' in error && cause instanceof Error;
  if (isQuery) return `the database failed: ${cause.message}`;
  const isAway = isBrokenConnection(error) || isConnectionError(error);
  return isAway ? `the database cannot be reached: ${error.message}` : error.message;
}
