/**
 * Fails one statement of this process, as PostgreSQL or the network does: with an error of the server, or with a connection
 * that breaks before the statement or before its result arrives.
 */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

type Query = (this: pg.Client, ...args: any[]) => any;

/** Errors of the server by SQLSTATE, and broken connections. */
export const databaseFaults = {
  'a serialization failure': '40001',
  'a deadlock': '40P01',
  'a statement timeout': '57014',
  'a full disk': '53100',
  'an I/O error': '58030',
  'a shutdown': '57P01',
  'a read-only server': '25006',
  'a connection that breaks before': 'before',
  'a connection that breaks after': 'after',
} as const;

export type DatabaseFault = keyof typeof databaseFaults;

const CLOSE_MS = 10_000;

/**
 * Runs `work`. The first statement that `chooses` accepts fails; its text is returned, or null if there was none. Resolves when
 * the pool knows that a broken connection is broken: until then it would give it to the next statement of the test.
 */
export async function withDatabaseFault(
  fault: DatabaseFault,
  chooses: (text: string) => boolean,
  work: () => Promise<void>,
): Promise<string | null> {
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const original = prototype.query;
  let failed: string | null = null;
  let closed: Promise<unknown> = Promise.resolve();
  prototype.query = function (...args) {
    const text = textOf(args[0]);
    if (failed !== null || !chooses(text)) return original.apply(this, args);
    failed = text;
    if (fault.startsWith('a connection')) closed = new Promise((resolve) => streamOf(this).once('close', resolve));
    return failStatement(this, original, args, databaseFaults[fault]);
  };
  try {
    await work();
  } finally {
    prototype.query = original;
    // A statement that waits for a lock has no result yet.
    await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
  }
  return failed;
}

const streamOf = (client: pg.Client) => (client as unknown as { connection: { stream: Socket } }).connection.stream;

function failStatement(client: pg.Client, query: Query, args: any[], fault: string): unknown {
  const callback =
    typeof args.at(-1) === 'function' ? (args.at(-1) as (error: unknown, result?: unknown) => void) : null;
  const stream = streamOf(client);
  if (fault === 'before') {
    stream.destroy();
    return query.apply(client, args);
  }
  if (fault === 'after') {
    const lost = new Error('Connection terminated unexpectedly');
    const lose = () => {
      stream.destroy();
      throw lost;
    };
    if (!callback) return query.apply(client, args).then(lose);
    return query.call(client, ...args.slice(0, -1), () => {
      stream.destroy();
      callback(lost);
    });
  }
  const statement = `do $$ begin raise exception 'injected' using errcode = '${fault}'; end $$`;
  return callback ? query.call(client, statement, callback) : query.call(client, statement);
}

function textOf(query: unknown): string {
  const text = typeof query === 'string' ? query : (query as { text?: string }).text;
  return (text ?? 'a cursor').replaceAll(/\s+/g, ' ').slice(0, 80);
}
