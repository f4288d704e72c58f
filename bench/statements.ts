/**
 * What the peer runs is what the server runs: the statements are recorded from the services themselves, not copied, so
 * that the comparison follows every change of them.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import type { Db } from '../src/platform/db.ts';

export interface Statement {
  text: string;
  values: unknown[];
}

/** A script for pgbench, with the variables that it refers to. */
export interface Script {
  text: string;
  variables: Record<string, string>;
}

type Query = (...args: unknown[]) => unknown;

/** The statements that `work` sends, on whatever connection. Other work of this process is not recorded. */
export async function recordStatements(work: () => Promise<unknown>): Promise<Statement[]> {
  const recorded = new AsyncLocalStorage<Statement[]>();
  const statements: Statement[] = [];
  const client = pg.Client.prototype as unknown as { query: Query };
  const { query } = client;
  client.query = function (...args) {
    recorded.getStore()?.push(statementOf(args));
    return query.apply(this, args);
  };
  try {
    await recorded.run(statements, work);
  } finally {
    client.query = query;
  }
  return statements;
}

function statementOf([config, values]: unknown[]): Statement {
  if (typeof config === 'string') return { text: config, values: Array.isArray(values) ? values : [] };
  const given = config as Statement;
  return { text: given.text, values: given.values ?? (Array.isArray(values) ? values : []) };
}

/**
 * A script that repeats the work with new ids. Takes two recordings: what is the same in both is sent as it is, times are
 * the time, and a UUID that differs is a new random one in each transaction.
 */
export async function scriptOf(db: Db, one: Statement[], other: Statement[]): Promise<Script> {
  const variables: Record<string, string> = {};
  const fresh = new Map<string, string>();
  const parameter = (value: unknown, otherValue: unknown): string => {
    if (value === null) return 'null';
    if (value instanceof Date) return 'now()';
    const text = asText(value);
    return text === asText(otherValue) ? `:${define(variables, text)}` : expression(text, fresh);
  };
  const lines: string[] = [];
  for (const [i, { text, values }] of one.entries()) {
    // pgbench makes each mention of a parameter one of its own, which has to say its type.
    const types = values.length > 0 ? await typesOf(db, text) : [];
    const given = values.map((value, n) => `${parameter(value, other[i]!.values[n])}::${types[n]}`);
    lines.push(`${text.replace(/\$(\d+)/g, (_, n) => given[n - 1]!)};`);
  }
  const setting = [...fresh.values()].map((name) => `\\set ${name} random(0, ${2 ** 48 - 1})`);
  return { text: [...setting, ...lines].join('\n'), variables };
}

/** What PostgreSQL takes the parameters for. */
async function typesOf(db: Db, text: string): Promise<string[]> {
  const client = await db.$client.connect();
  try {
    await client.query(`prepare typed as ${text}`);
    const { rows } = await client.query<{ types: string[] }>(
      `select parameter_types::text[] as types from pg_prepared_statements where name = 'typed'`,
    );
    await client.query('deallocate typed');
    return rows[0]!.types;
  } finally {
    client.release();
  }
}

function define(variables: Record<string, string>, value: string): string {
  const known = Object.keys(variables).find((name) => variables[name] === value);
  const name = known ?? `given_${Object.keys(variables).length}`;
  variables[name] = value;
  return name;
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/**
 * pgbench has whole numbers only, so PostgreSQL makes the UUID out of one: 48 random bits. It takes what follows a colon
 * for a variable, in text too, so a colon is written as an escape.
 */
function expression(text: string, fresh: Map<string, string>): string {
  const plain = text.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll(':', '\\x3a');
  const made = plain.replace(uuid, (id) => {
    if (!fresh.has(id)) fresh.set(id, `random_${fresh.size}`);
    return `b3c80000-0000-4000-8000-' || lpad(to_hex(:${fresh.get(id)}::bigint), 12, '0') || E'`;
  });
  if (made === plain) throw new Error(`what changes from one run to the next is no UUID: ${text}`);
  return `(E'${made}')`;
}

/** As pg sends it. */
function asText(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(asText).join(',')}}`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
