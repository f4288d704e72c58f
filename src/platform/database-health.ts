/**
 * Whether the database responds and can write, for the readiness of a server.
 *
 * Most statements of a full disk still succeed, because pages and WAL segments have room. So a failed statement is recorded,
 * and from then on each check allocates pages until that succeeds.
 */
import { shortageOf } from './db-errors.ts';
import type { Db } from './db.ts';

interface DatabaseHealth {
  /** Records a statement that failed. Errors of other kinds are ignored. */
  record(error: unknown): void;
  /** Resolves with null, or for example with `the database is out of memory`. @throws when it does not respond */
  findShortage(): Promise<string | null>;
}

/** More than the pages that a new table gets at once. */
const allocate = `create temp table cloudyard_write_check on commit drop as select repeat('x', 1000) from generate_series(1, 2000)`;

/** `findShortage` sends a statement at each call, and tries to allocate after a recorded shortage. */
export function createDatabaseHealth({ $client }: Db): DatabaseHealth {
  let shortage: string | null = null;
  return {
    record(error) {
      shortage = shortageOf(error) ?? shortage;
    },
    async findShortage() {
      if (shortage === null) {
        await $client.query('select 1');
        return null;
      }
      try {
        await $client.query(allocate);
        shortage = null;
      } catch (error) {
        shortage = shortageOf(error);
        if (shortage === null) throw error;
      }
      return shortage && `the database ${shortage}`;
    },
  };
}
