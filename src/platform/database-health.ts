/**
 * Whether the database responds and can write, for the readiness of a server.
 *
 * Most statements of a full disk still succeed, because pages and WAL segments have room. So a failed statement is recorded,
 * and from then on each check allocates pages until that succeeds.
 */
import { hostShortageOf, shortageOf } from './db-errors.ts';
import type { Db } from './db.ts';

/** More than the pages that a new table gets at once. */
const allocate = `create temp table cloudyard_write_check on commit drop as select repeat('x', 1000) from generate_series(1, 2000)`;

/** An operator or a cloud provider may set this for all transactions, for example because the disk is nearly full. */
const readMode = `select current_setting('transaction_read_only') = 'on' as "isReadOnly"`;

/** `findProblem` sends a statement at each call, and tries to allocate after a recorded shortage. */
export function createDatabaseHealth({ $client }: Db) {
  let shortage: string | null = null;
  const findModeProblem = async () => {
    try {
      const { rows } = await $client.query<{ isReadOnly: boolean }>(readMode);
      return rows[0]!.isReadOnly ? 'the database is read-only' : null;
    } catch (error) {
      // It responds, for example that it has too many connections.
      const lacking = shortageOf(error);
      const problem = lacking === null ? hostShortageOf(error) : `the database ${lacking}`;
      if (problem === null) throw error;
      return problem;
    }
  };
  return {
    /** Records a statement that failed. Errors of other kinds are ignored. */
    record(error: unknown): void {
      shortage = shortageOf(error) ?? shortage;
    },
    /** Resolves with null, or for example with `the database is read-only`. @throws when it does not respond */
    async findProblem(): Promise<string | null> {
      const problem = await findModeProblem();
      if (problem !== null || shortage === null) return problem;
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
