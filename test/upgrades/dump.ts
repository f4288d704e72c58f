/** Reads the database of a release for its fixture. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from '../../src/platform/db.ts';
import { withClient } from '../../src/platform/with-client.ts';

interface Dump {
  /** The host's time of the dump. */
  at: Date;
  /** In an order that satisfies foreign keys. */
  tables: { table: string; rows: object[] }[];
  functions: string[];
  triggers: string[];
  jobs: object[];
  statements: string[];
}

/** Begins to record the statements in the log of PostgreSQL. */
export async function openDump(connection: ConnectionOptions, logFile: string): Promise<{ read(): Promise<Dump> }> {
  const query = <Row extends object>(text: string): Promise<Row[]> =>
    withClient(connection, async (client) => (await client.query<Row>(text)).rows);
  await query(`alter system set log_statement = 'all'`);
  await query('alter system set log_parameter_max_length = 0');
  await query('select pg_reload_conf()');
  return {
    async read() {
      const [{ at }] = (await query<{ at: Date }>('select now() as at')) as [{ at: Date }];
      const tables: Dump['tables'] = [];
      for (const table of await orderedTables(query)) {
        const rows = (await query<{ row: object }>(`select row_to_json(t)::text as row from "${table}" t`)).map(
          ({ row }) => JSON.parse(String(row)) as object,
        );
        if (rows.length > 0) tables.push({ table, rows });
      }
      const definitions = async (text: string) => (await query<{ text: string }>(text)).map((row) => row.text);
      return {
        ...{ at, tables, jobs: await query(jobs) },
        functions: await definitions(functions),
        triggers: await definitions(triggers),
        statements: statementsIn(readFileSync(logFile, 'utf8')),
      };
    },
  };
}

async function orderedTables(query: <Row extends object>(text: string) => Promise<Row[]>): Promise<string[]> {
  const names = (await query<{ name: string }>(tableNames)).map(({ name }) => name);
  const references = await query<{ from: string; to: string }>(foreignKeys);
  const ordered: string[] = [];
  while (ordered.length < names.length) {
    const isReady = (name: string) => references.every(({ from, to }) => from !== name || ordered.includes(to));
    const ready = names.filter((name) => !ordered.includes(name) && isReady(name));
    if (ready.length === 0) throw new Error('the foreign keys have a cycle');
    ordered.push(...ready);
  }
  return ordered;
}

/** Workers name the host, and are gone when the next version starts. */
const tableNames = `select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'workers' order by 1`;

const foreignKeys = `select conrelid::regclass::text as from, confrelid::regclass::text as to from pg_constraint
  where contype = 'f' and conrelid <> confrelid and connamespace = 'public'::regnamespace`;

const functions = `select pg_get_functiondef(oid) as text from pg_proc where pronamespace = 'public'::regnamespace order by proname`;

const triggers = `select pg_get_triggerdef(t.oid) as text from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where not t.tgisinternal and c.relnamespace = 'public'::regnamespace order by c.relname, t.tgname`;

const jobs = `select t.identifier, j.payload, j.priority, j.run_at, j.attempts, j.key, j.locked_at, j.locked_by, j.flags
  from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id order by j.id`;

/** The statements on tables in a log of PostgreSQL, each once, apart from those of its queue and of this file. */
function statementsIn(log: string): string[] {
  const entries = log.split(/^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)/m);
  const found = entries.flatMap((entry) => {
    const [, , application, text] =
      /^(\S+ \S+ \S+ \[\d+\] \S+) (.*?) ?LOG: {2}execute [^:]*: ([\s\S]*)$/.exec(entry) ?? [];
    if (text === undefined || !application!.startsWith('cloudyard')) return [];
    const plain = text.replace(/\n\t/g, '\n').trim();
    return /^(select|insert|update|delete|with)\b/i.test(plain) && !/graphile_worker/.test(plain) ? [plain] : [];
  });
  return [...new Set(found)].sort();
}
