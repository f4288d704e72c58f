/**
 * Detects a connection pooler that gives a session of PostgreSQL to another client after each transaction. Behind one, advisory
 * locks exclude nobody and stay when their process ends, and notifications reach nobody.
 */
import type pg from 'pg';
import { backendOf } from './lost-servers.ts';
import { withClient } from './with-client.ts';

/** For messages, after the name of the database. */
export const sharedSessions =
  'is behind a pooler that shares its sessions (PgBouncer: pool_mode is transaction or statement); ' +
  'set pool_mode = session, or connect to PostgreSQL directly';

/**
 * How long a check waits for the answer to a query. A pooler accepts a connection before it has a session of PostgreSQL for it, and
 * the first query waits for one.
 */
export const queryTimeoutMs = 5000;

/** Why a query had no answer in time; other errors: their message. For messages, after `the database …` or `cannot be checked`. */
export function connectionProblem({ message }: Error): string {
  if (message !== 'Query read timeout') return message;
  return 'it accepts connections and does not answer queries; a pooler may have no free session (PgBouncer: default_pool_size)';
}

/** A busy pooler may give two clients different sessions by chance. */
const attempts = 3;
/** A pooler in session mode may have no second session. */
const answerMs = 3000;

/** `client` is connected with `config`. False if it is not certain. */
export async function sharesSessions(client: pg.Client, config: pg.ClientConfig): Promise<boolean> {
  // A pooler announces a number of its own.
  if ((await sessionOf(client)) === backendOf(client)) return false;
  const sharesWith = async (other: pg.Client) => {
    for (let attempt = 0; attempt < attempts; attempt++) {
      if ((await sessionOf(client)) === (await sessionOf(other))) return true;
    }
    return false;
  };
  return withClient({ ...config, query_timeout: answerMs }, sharesWith).catch(() => false);
}

async function sessionOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]!.pid;
}
