import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { type DatabaseFault, withDatabaseFault } from './database-faults.ts';

it.each<DatabaseFault>(['a connection that breaks before', 'a connection that breaks after'])(
  '%s: the pool has replaced it when the work has ended',
  async (fault) => {
    const pool = new pg.Pool({ ...inject('postgres'), max: 1 });
    onTestFinished(() => pool.end());
    pool.on('error', () => undefined);
    pool.on('connect', (client) => client.on('error', () => undefined));
    const work = async () => {
      const client = await pool.connect();
      await expect(client.query('select 1')).rejects.toThrow('terminated');
      client.release();
    };
    expect(await withDatabaseFault(fault, () => true, work)).toBe('select 1');
    expect((await pool.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
  },
);
