import pg from 'pg';
import { expect, it } from 'vitest';
import { createDatabaseHealth } from './database-health.ts';
import type { Db } from './db.ts';

function failing(error: Error) {
  const query = async () => {
    throw error;
  };
  return createDatabaseHealth({ $client: { query } } as unknown as Db);
}

it('a database or host that lacks something for a connection is a problem with this reason', async () => {
  const refused = Object.assign(new pg.DatabaseError('sorry, too many clients already', 1, 'error'), { code: '53300' });
  expect(await failing(refused).findProblem()).toBe('the database has too many connections');
  const noDescriptors = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' });
  expect(await failing(noDescriptors).findProblem()).toBe('this server has no file descriptors left');
  const broken = new Error('Connection terminated unexpectedly');
  await expect(failing(broken).findProblem()).rejects.toBe(broken);
});
