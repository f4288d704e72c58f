import pg from 'pg';

/** Calls `work` with a new connection, which is closed afterwards; an open transaction is rolled back. */
export async function withClient<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config);
  // Errors also reject the queries. Without a listener the event would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
