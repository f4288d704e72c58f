import { DrizzleQueryError } from 'drizzle-orm/errors';
import { expect, it } from 'vitest';
import { messageOf } from './error-message.ts';

it('names the database, and of a failed query the cause, and neither the statement nor its parameters', () => {
  const cause = new Error('Connection terminated unexpectedly');
  expect(messageOf(new DrizzleQueryError('rollback', ['secret'], cause))).toBe(
    'the database failed: Connection terminated unexpectedly',
  );
  const reached = 'the database cannot be reached: timeout expired';
  expect([messageOf(new Error('timeout expired')), messageOf(new Error(reached))]).toEqual([reached, reached]);
  expect(messageOf(new Error('the key file cannot be read'))).toBe('the key file cannot be read');
});
