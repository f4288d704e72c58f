/**
 * Combines concurrent reads of single rows by id into one statement, so that many of the most frequent requests cost
 * PostgreSQL and Node one parse, one plan and one result. The reads of one turn of the event loop share a statement.
 *
 * Invariant: a row is read after the call, so a caller reads its own earlier writes. At most `concurrency` statements of a
 * kind run; later calls wait for the next one. If a statement fails, all calls that share it fail.
 */
import { prepared } from './db.ts';
import type { Db, Tx } from './db.ts';

const concurrency = 2;
/** Lists of ids are padded to one of these lengths, so that there are few prepared statements. */
const lengths = [1, 2, 4, 8, 16, 32, 64];
const largest = 64;

interface Waiting<Row> {
  id: string;
  resolve(row: Row | null): void;
  reject(error: unknown): void;
}

interface Batches<Row> {
  waiting: Waiting<Row>[];
  running: number;
  /** Whether a statement is about to be sent. */
  isDue: boolean;
}

/** The reads of a transaction share nothing: they are sent one by one. */
export function batchedRead<Row extends { id: string | number }>(
  read: (on: Db | Tx, ids: string[]) => Promise<Row[]>,
): (on: Db | Tx, id: string | number) => Promise<Row | null> {
  const states = new WeakMap<Db, Batches<Row>>();

  const run = async (db: Db, state: Batches<Row>): Promise<void> => {
    state.running += 1;
    while (state.waiting.length > 0) {
      const batch = state.waiting.splice(0, largest);
      try {
        const rows = new Map(
          (await read(db, [...new Set(batch.map((one) => one.id))])).map((row) => [`${row.id}`, row]),
        );
        for (const one of batch) one.resolve(rows.get(one.id) ?? null);
      } catch (error) {
        for (const one of batch) one.reject(error);
      }
    }
    state.running -= 1;
  };

  return (on, id) => {
    if ('pending' in on) return read(on, [`${id}`]).then((rows) => rows[0] ?? null);
    let state = states.get(on);
    if (!state) states.set(on, (state = { waiting: [], running: 0, isDue: false }));
    const own = state;
    return new Promise((resolve, reject) => {
      // PostgreSQL writes ids in lower case.
      own.waiting.push({ id: `${id}`.toLowerCase(), resolve, reject });
      if (own.isDue || own.running === concurrency) return;
      own.isDue = true;
      // At the end of this turn of the event loop, which may bring more reads.
      setImmediate(() => {
        own.isDue = false;
        if (own.running < concurrency) void run(on, own);
      });
    });
  };
}

/**
 * A prepared read by a list of ids, with one parameter for each id. With an array parameter, whose length PostgreSQL
 * estimates at ten, it would plan each call again, which takes longer than the read.
 */
export function preparedByIds<Row extends object>(
  name: string,
  text: (ids: string) => string,
): (on: Db | Tx, ids: string[]) => Promise<Row[]> {
  const statements = lengths.map((length) => ({
    length,
    run: prepared<Row>(`${name}_${length}`, text(Array.from({ length }, (_, i) => `$${i + 1}`).join(', '))),
  }));
  return (on, ids) => {
    const { length, run } = statements.find((statement) => statement.length >= ids.length)!;
    return run(on, ...ids, ...Array.from({ length: length - ids.length }, () => ids[0]));
  };
}
