import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { connect } from './db.ts';
import { statementTimeout } from '../http/time-limit.ts';
import { silentLogger } from './log.ts';

describe.each([
  ['idle_in_transaction_session_timeout', '30s', 'a transaction of a frozen process or a lost host ends'],
  ['lock_timeout', '15s', 'a statement that waits for a lock of another session fails'],
  ['statement_timeout', '25s', 'a statement of a request fails'],
])('%s', (setting, limit, effect) => {
  it.each([
    [limit, '', effect],
    ['7s', `?options=-c%20${setting}%3D7s`, 'the limit of the operator counts'],
  ])('is %s%s: %s', async (expected, options) => {
    const { host, port, user, database } = inject('postgres') as Record<string, string>;
    const connectionString = `postgres://${user}@${encodeURIComponent(host!)}:${port}/${database}${options}`;
    const { $client } = connect({ connectionString, statementTimeout, log: silentLogger });
    onTestFinished(() => $client.end());
    const { rows } = await $client.query(`show ${setting}`);
    expect(rows).toEqual([{ [setting]: expected }]);
  });
});
