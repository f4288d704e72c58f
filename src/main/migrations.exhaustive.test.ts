import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { migrate, migrationsFolder } from './migrate.ts';
import { emptyDatabase, jobsOfRelease, queryOnce } from './test-migrations.ts';

describe('migrations', () => {
  it('change nothing when their process dies before any of their statements', { timeout: 300_000 }, async () => {
    const connection = await emptyDatabase();
    await queryOnce(connection, readFileSync(join(migrationsFolder, '0000_initial.sql'), 'utf8'));
    await queryOnce(connection, jobsOfRelease);
    const columns = `select table_schema, table_name, count(*)::int as columns from information_schema.columns
      where table_schema not in ('information_schema', 'pg_catalog') group by 1, 2 order by 1, 2`;
    const rows = () => queryOnce(connection, 'select count(*)::int as count from notifications');
    const before = [await queryOnce(connection, columns), await rows()];
    const original = pg.Client.prototype.query;
    let [left, wasReached] = [0, true];
    const dying = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: any[]) {
      // PostgreSQL sees what it sees of a process that was killed: the connection closes in the middle of the transaction.
      if (left-- === 0) {
        wasReached = true;
        (this as any).connection.stream.destroy();
      }
      return original.apply(this, args as never);
    } as never);
    let statements = 0;
    let after: unknown[] = before;
    for (; wasReached; statements++) {
      [left, wasReached] = [statements, false];
      await migrate(connection).catch(() => {});
      left = Infinity;
      // The triggers and functions after the transaction may be missing; the next start installs them.
      after = [await queryOnce(connection, columns), await rows()];
      if (JSON.stringify(after) !== JSON.stringify(before)) break;
    }
    expect(statements).toBeGreaterThan(40);
    // The first run that did not die before the commit has migrated everything.
    const complete = await queryOnce(connection, 'select count(*)::int as count from drizzle.__drizzle_migrations');
    expect(complete).toEqual([
      { count: readdirSync(migrationsFolder).filter((file) => /^\d{4}_.*\.sql$/.test(file)).length },
    ]);
    dying.mockRestore();
    await migrate(connection);
    expect(
      await queryOnce(
        connection,
        `select count(*)::int > 20 as enough from pg_proc where pronamespace = 'cloudyard_writes'::regnamespace`,
      ),
    ).toEqual([{ enough: true }]);
  });
});
