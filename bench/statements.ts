/**
 * Records the statements of the services for the pgbench peer, so that the peer always runs the same statements as the
 * server.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import type { Db } from '../src/platform/db.ts';

interface Statement {
  text: string;
  values: unknown[];
}

/** A script for pgbench, with the variables that it refers to. */
export interface Script {
  text: string;
  variables: Record<string, string>;
}

type Query = (...args: unknown[]) => unknown;

/** Records the statements that `work` sends on any connection, and no others of this process. */
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
 * A script that repeats the work with new ids. It compares two recordings: equal values are constants, times become now(),
 * and UUIDs that only one of them has become random ones in each transaction.
 */
export async function scriptOf(db: Db, one: Statement[], other: Statement[]): Promise<Script> {
  const variables: Record<string, string> = {};
  const fresh = new Map<string, string>();
  const parameter = (value: unknown, otherValue: unknown): string => {
    if (value === null) return 'null';
    if (value instanceof Date) return 'now()';
    const text = asText(value);
    const otherText = asText(otherValue);
    return text === otherText ? `:${define(variables, text)}` : expression(text, otherText, fresh);
  };
  const lines: string[] = [];
  for (const [i, { text, values }] of one.entries()) {
    // pgbench makes each occurrence of a parameter a separate one, which needs a type.
    const types = values.length > 0 ? await typesOf(db, text) : [];
    const given = values.map((value, n) => `${parameter(value, other[i]!.values[n])}::${types[n]}`);
    lines.push(`${text.replace(/\$(\d+)/g, (_, n) => given[n - 1]!)};`);
  }
  const setting = [...fresh.values()].map((name) => `\\set ${name} random(0, ${2 ** 48 - 1})`);
  return { text: [...setting, ...lines].join('\n'), variables };
}

/** The types that PostgreSQL infers for the parameters. */
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
 * pgbench has only integers, so PostgreSQL builds the UUID from one of 48 random bits. pgbench interprets a colon as the
 * start of a variable, even in strings, so colons are escaped.
 */
function expression(text: string, otherText: string, fresh: Map<string, string>): string {
  const plain = text.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll(':', '\\x3a');
  const made = plain.replace(uuid, (id) => {
    if (otherText.includes(id)) return id;
    if (!fresh.has(id)) fresh.set(id, `random_${fresh.size}`);
    return `b3c80000-0000-4000-8000-' || lpad(to_hex(:${fresh.get(id)}::bigint), 12, '0') || E'`;
  });
  if (made === plain) throw new Error(`the two recordings differ in a value that is not a UUID: ${text}`);
  return `(E'${made}')`;
}

/** The text format in which pg sends a value. */
function asText(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(asText).join(',')}}`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
