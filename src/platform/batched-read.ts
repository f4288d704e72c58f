/**
 * Reads of single rows by id that are under way at the same time become one statement: the hottest of all requests then
 * cost PostgreSQL and Node one parse, one plan and one answer for many of them.
 *
 * Invariant: an id is asked for after the call, so whoever wrote before calling reads what it wrote. At most `atOnce`
 * statements of a kind run; what comes meanwhile waits for the next one. A failure is everybody's whose id was in it.
 */
import { prepared } from './db.ts';
import type { Db } from './db.ts';

const atOnce = 2;
/** Lists of ids are filled up to one of these lengths, so that there are few statements. */
const lengths = [1, 4, 16, 64];
const largest = 64;

interface Waiting<Row> {
  id: string;
  resolve(row: Row | null): void;
  reject(error: unknown): void;
}

interface Batches<Row> {
  waiting: Waiting<Row>[];
  running: number;
}

export function batchedRead<Row extends { id: string }>(
  read: (db: Db, ids: string[]) => Promise<Row[]>,
): (db: Db, id: string) => Promise<Row | null> {
  const states = new WeakMap<Db, Batches<Row>>();

  const run = async (db: Db, state: Batches<Row>): Promise<void> => {
    state.running += 1;
    while (state.waiting.length > 0) {
      const batch = state.waiting.splice(0, largest);
      try {
        const rows = new Map((await read(db, [...new Set(batch.map((one) => one.id))])).map((row) => [row.id, row]));
        for (const one of batch) one.resolve(rows.get(one.id) ?? null);
      } catch (error) {
        for (const one of batch) one.reject(error);
      }
    }
    state.running -= 1;
  };

  return (db, id) => {
    let state = states.get(db);
    if (!state) states.set(db, (state = { waiting: [], running: 0 }));
    const { waiting, running } = state;
    return new Promise((resolve, reject) => {
      // PostgreSQL writes ids in lower case.
      waiting.push({ id: id.toLowerCase(), resolve, reject });
      if (running < atOnce) void run(db, state);
    });
  };
}

/**
 * A prepared read by a list of ids. Over an array, whose length PostgreSQL guesses at ten, it would plan anew at every
 * call, which takes longer than reading; with as many parameters as ids it plans once a length.
 */
export function preparedByIds<Row extends { id: string }>(
  name: string,
  text: (ids: string) => string,
): (db: Db, ids: string[]) => Promise<Row[]> {
  const statements = lengths.map((length) => ({
    length,
    run: prepared<Row>(`${name}_${length}`, text(Array.from({ length }, (_, i) => `$${i + 1}`).join(', '))),
  }));
  return (db, ids) => {
    const { length, run } = statements.find((statement) => statement.length >= ids.length)!;
    return run(db, ...ids, ...Array.from({ length: length - ids.length }, () => ids[0]));
  };
}
