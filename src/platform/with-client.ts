import pg from 'pg';
import { recordConnectionErrors } from './primary-client.ts';

/** SQL that removes the time limits that the operator has set for the role or the database. `lock_timeout` stays. */
export const withoutTimeLimits = `select set_config(name, '0', false) from pg_settings
  where name in ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`;

/** Calls `work` with a new connection, which is closed afterwards; an open transaction is rolled back. */
export async function withClient<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config);
  // Errors also reject the queries. Without a listener the event would end the process.
  client.on('error', () => {});
  recordConnectionErrors(client);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** As `withClient`, for a migration or a copy of the database, which may take hours. pg_dump removes the time limits, too. */
export function withUnlimitedClient<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return withClient(config, async (client) => {
    await client.query(withoutTimeLimits);
    return work(client);
  });
}
