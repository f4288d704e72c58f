/**
 * Combines concurrent reads of single rows by their key into one statement, so that many of the most frequent requests cost
 * PostgreSQL and Node one parse, one plan and one result. A statement is sent after a turn of the event loop that brought no
 * more reads: small batches cost several processes on few processors more than they gain by overlapping.
 *
 * Invariant: a row is read after the call, so a caller reads its own earlier writes. One statement of a kind runs, and beside
 * one that takes long a second one: a connection whose backend does not respond delays only its own reads, and reads of a
 * distant PostgreSQL overlap. Later calls wait for the next one. If a statement fails, all calls that share it fail.
 */
import { type Db, prepared, type Tx } from './db.ts';

/** Longest time that a batch waits for more reads, in ms. */
const longestWaitMs = 1;
/** A statement that runs longer than this lets another one run beside it, in ms. */
const longMs = 10;
/** Statements of a kind that may run: the rest of the pool stays free when a lock blocks them all. */
const mostStatements = 2;
/** Lists of keys are padded to one of these lengths, so that there are few prepared statements. */
const lengths = [1, 2, 4, 8, 16, 32, 64];
const largest = 64;

/** The values that identify a row. Only the last one may contain a slash. */
export type Key = readonly (string | number)[];

const textOf = (key: Key): string => key.join('/');

interface Waiting<Row> {
  key: Key;
  resolve(row: Row | null): void;
  reject(error: unknown): void;
}

interface Batches<Row> {
  waiting: Waiting<Row>[];
  /** Whether a statement is about to be sent. */
  isDue: boolean;
  /** Statements that run. */
  running: number;
  /** How many of them take long. */
  long: number;
}

/** `keyOf`: the key by which a row is read. The reads of a transaction share nothing: they are sent one by one. */
export function batchedRead<Row>(
  read: (on: Db | Tx, keys: Key[]) => Promise<Row[]>,
  keyOf: (row: Row) => Key,
): (on: Db | Tx, ...key: Key) => Promise<Row | null> {
  const states = new WeakMap<Db, Batches<Row>>();

  const send = async (db: Db, state: Batches<Row>): Promise<void> => {
    if (state.isDue || state.waiting.length === 0) return;
    if (state.running > state.long || state.running === mostStatements) return;
    state.isDue = true;
    await noMoreReads(state.waiting);
    state.isDue = false;
    const batch = state.waiting.splice(0, largest);
    state.running += 1;
    let isLong = false;
    const timer = setTimeout(() => {
      isLong = true;
      state.long += 1;
      void send(db, state);
    }, longMs);
    try {
      const keys = new Map(batch.map(({ key }) => [textOf(key), key]));
      const rows = new Map((await read(db, [...keys.values()])).map((row) => [textOf(keyOf(row)), row]));
      for (const { key, resolve } of batch) resolve(rows.get(textOf(key)) ?? null);
    } catch (error) {
      for (const one of batch) one.reject(error);
    }
    clearTimeout(timer);
    state.running -= 1;
    if (isLong) state.long -= 1;
    void send(db, state);
  };

  return (on, ...key) => {
    if ('pending' in on) return read(on, [key]).then((rows) => rows[0] ?? null);
    let state = states.get(on);
    if (!state) states.set(on, (state = { waiting: [], isDue: false, running: 0, long: 0 }));
    const own = state;
    return new Promise((resolve, reject) => {
      own.waiting.push({ key, resolve, reject });
      void send(on, own);
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
 * A prepared read by a list of keys, with one parameter for each value: `text` gets `$1, $2`, or `($1, $2), ($3, $4)` for keys
 * of two values. With an array parameter, whose length PostgreSQL estimates at ten, it would plan each call again, which takes
 * longer than the read.
 */
export function preparedByKeys<Row extends object>(
  name: string,
  text: (keys: string) => string,
  values = 1,
): (on: Db | Tx, keys: Key[]) => Promise<Row[]> {
  const parametersOf = (index: number) =>
    Array.from({ length: values }, (_, i) => `$${index * values + i + 1}`).join(', ');
  const keyAt = (index: number) => (values === 1 ? parametersOf(index) : `(${parametersOf(index)})`);
  const statements = lengths.map((length) => ({
    length,
    run: prepared<Row>(`${name}_${length}`, text(Array.from({ length }, (_, i) => keyAt(i)).join(', '))),
  }));
  return (on, keys) => {
    const { length, run } = statements.find((statement) => statement.length >= keys.length)!;
    return run(on, ...Array.from({ length }, (_, i) => keys[i] ?? keys[0]!).flat());
  };
}
