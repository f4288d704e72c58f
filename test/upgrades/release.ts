/** The database of a release from its fixture (make-fixture.ts), with rows, triggers and pending jobs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { migrationsIn } from '../../src/backup/migrations.ts';
import { migrationsFolder } from '../../src/main/migrate.ts';

/** Not secret: they encrypt the examples of fixtures only. */
export const fixtureKey = { id: 'fixture', key: Buffer.alloc(32, 'fixture') };
export const fixtureToken = 'fixture$token-of-the-fixtures';

interface Answer {
  path: string;
  body: unknown;
}

interface Release {
  /** The time on the release's host when the fixture was made. */
  at: Date;
  parameters: Record<string, string>;
  answers: Answer[];
  /** The statements that the release executed on its tables. */
  statements: string[];
}

/** A job of graphile-worker, which 0.2.0 used. */
interface ReleasedJob {
  identifier: string;
  payload: { resource?: string; id?: string; client_id?: number };
}

interface TableRows {
  table: string;
  rows: object[];
}

export const fixtureFolder = (version: string) => join(import.meta.dirname, version);

function linesOf<Line>(version: string, file: string): Line[] {
  const text = readFileSync(join(fixtureFolder(version), file), 'utf8');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
}

export function readRelease(version: string): Release {
  const { at, parameters } = JSON.parse(readFileSync(join(fixtureFolder(version), 'release.json'), 'utf8'));
  const [answers, statements] = [
    linesOf<Answer>(version, 'answers.jsonl'),
    linesOf<string>(version, 'statements.jsonl'),
  ];
  return { at: new Date(at), parameters, answers, statements };
}

export const jobsOf = (version: string): ReleasedJob[] => linesOf(version, 'jobs.jsonl');

/** Creates the schema of a release, which ended with the migration `newest`. */
export async function createReleasedSchema(client: pg.Client, newest: string): Promise<void> {
  const { list, statementsOf } = migrationsIn(migrationsFolder);
  await client.query(`create schema drizzle;
    create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`);
  for (const each of list.slice(0, list.findIndex(({ migration }) => migration === newest) + 1)) {
    for (const statement of statementsOf(each)) await client.query(statement);
    await client.query(`insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', $1)`, [each.when]);
  }
}

/** Fills the schema of a release with its examples, its triggers and its pending jobs. */
export async function loadRelease(client: pg.Client, version: string): Promise<void> {
  for (const { table, rows } of linesOf<TableRows>(version, 'tables.jsonl')) {
    const name = client.escapeIdentifier(table);
    await client.query(
      `insert into ${name} overriding system value select * from json_populate_recordset(null::${name}, $1)`,
      [JSON.stringify(rows)],
    );
  }
  await client.query(continueSequences);
  // A function may refer to a later one.
  await client.query('set check_function_bodies = off');
  for (const definition of linesOf<string>(version, 'triggers.jsonl')) await client.query(definition);
  await client.query(queueSchema);
  await client.query(
    `insert into graphile_worker._private_tasks (identifier)
     select distinct job ->> 'identifier' from json_array_elements($1) as job`,
    [JSON.stringify(jobsOf(version))],
  );
  await client.query(
    `insert into graphile_worker._private_jobs (task_id, payload, priority, run_at, attempts, key, locked_at, locked_by, flags)
     select t.id, j.payload, j.priority, j.run_at, j.attempts, j.key, j.locked_at, j.locked_by, j.flags
     from json_to_recordset($1) as j (identifier text, payload json, priority smallint, run_at timestamptz, attempts smallint,
       key text, locked_at timestamptz, locked_by text, flags jsonb)
       join graphile_worker._private_tasks t on t.identifier = j.identifier`,
    [JSON.stringify(jobsOf(version))],
  );
}

/** Inserted ids do not advance the sequences that made them. */
const continueSequences = `
  do $$
  declare found record;
  begin
    for found in select table_name as name, column_name as id,
        pg_get_serial_sequence(quote_ident(table_name), column_name) as sequence
      from information_schema.columns where table_schema = 'public'
        and pg_get_serial_sequence(quote_ident(table_name), column_name) is not null
    loop
      execute format('select setval(%L, max(%I)) from %I', found.sequence, found.id, found.name);
    end loop;
  end $$`;

/** The columns of graphile-worker 0.17.3 that jobs have. */
const queueSchema = `
  create schema graphile_worker;
  create table graphile_worker._private_tasks (
    id int primary key generated always as identity, identifier text not null unique);
  create table graphile_worker._private_jobs (
    id bigint primary key generated always as identity, task_id int not null, payload json not null,
    priority smallint not null, run_at timestamptz not null, attempts smallint not null, key text unique,
    locked_at timestamptz, locked_by text, flags jsonb)`;
