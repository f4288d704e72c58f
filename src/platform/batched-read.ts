/**
 * Combines concurrent reads of single rows by id into one statement, so that many of the most frequent requests cost
 * PostgreSQL and Node one parse, one plan and one result. A statement is sent after a turn of the event loop that brought no
 * more reads: small batches cost several processes on few processors more than they gain by overlapping.
 *
 * Invariant: a row is read after the call, so a caller reads its own earlier writes. One statement of a kind runs; later
 * calls wait for the next one. If a statement fails, all calls that share it fail.
 */
import { prepared } from './db.ts';
import type { Db, Tx } from './db.ts';

/** Longest time that a batch waits for more reads, in ms. */
const longestWaitMs = 1;
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
  /** Whether a statement runs or is about to be sent. */
  isRunning: boolean;
}

/** The reads of a transaction share nothing: they are sent one by one. */
export function batchedRead<Row extends { id: string | number }>(
  read: (on: Db | Tx, ids: string[]) => Promise<Row[]>,
): (on: Db | Tx, id: string | number) => Promise<Row | null> {
  const states = new WeakMap<Db, Batches<Row>>();

  const run = async (db: Db, state: Batches<Row>): Promise<void> => {
    state.isRunning = true;
    while (state.waiting.length > 0) {
      await noMoreReads(state.waiting);
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
    state.isRunning = false;
  };

  return (on, id) => {
    if ('pending' in on) return read(on, [`${id}`]).then((rows) => rows[0] ?? null);
    let state = states.get(on);
    if (!state) states.set(on, (state = { waiting: [], isRunning: false }));
    const own = state;
    return new Promise((resolve, reject) => {
      // PostgreSQL writes ids in lower case.
      own.waiting.push({ id: `${id}`.toLowerCase(), resolve, reject });
      if (!own.isRunning) void run(on, own);
    });
  };
}

/** Resolves after a turn of the event loop that brought no more reads. */
function noMoreReads(waiting: unknown[]): Promise<void> {
  return new Promise((resolve) => {
    const until = performance.now() + longestWaitMs;
    let known = 0;
    const atEndOfTurn = () => {
      const isComplete = waiting.length === known || waiting.length >= largest || performance.now() >= until;
      if (isComplete) return resolve();
      known = waiting.length;
      setImmediate(atEndOfTurn);
    };
    setImmediate(atEndOfTurn);
  });
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
