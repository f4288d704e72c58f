import { expect, inject, it, onTestFinished } from 'vitest';
import { connect } from './db.ts';
import { silentLogger } from './log.ts';

it.each([
  ['30s', 'of a frozen process or a lost host ends', ''],
  ['7s', 'ends after the limit of the operator', '?options=-c%20idle_in_transaction_session_timeout%3D7s'],
])('after %s a transaction %s', async (limit, _, options) => {
  const { host, port, user, database } = inject('postgres') as Record<string, string>;
  const connectionString = `postgres://${user}@${encodeURIComponent(host!)}:${port}/${database}${options}`;
  const { $client } = connect({ connectionString, log: silentLogger });
  onTestFinished(() => $client.end());
  const { rows } = await $client.query('show idle_in_transaction_session_timeout');
  expect(rows).toEqual([{ idle_in_transaction_session_timeout: limit }]);
});
