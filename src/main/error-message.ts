/**
 * The message of an error that ends a command. The message of a failed query is the statement and its parameters, which may
 * contain secrets; its cause is the error of PostgreSQL or of the connection.
 */
export function messageOf(error: Error): string {
  const { cause } = error;
  const isQuery = 'query' in error && 'params' in error && cause instanceof Error;
  return isQuery ? `the database failed: ${cause.message}` : error.message;
}
