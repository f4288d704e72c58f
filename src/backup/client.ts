import pg from 'pg';
import type { ConnectionOptions } from '../platform/db.ts';

/** Calls `work` with a new connection, which is closed afterwards; an open transaction is rolled back. */
export async function withClient<T>(
  connection: ConnectionOptions,
  applicationName: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...connection, application_name: applicationName });
  // Errors also reject the queries. Without a listener the event would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
