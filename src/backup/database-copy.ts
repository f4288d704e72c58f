/**
 * Copies all rows of a database out and in, with COPY. The schema is not copied: the migrations create it.
 *
 * Invariant: all tables are read in one REPEATABLE READ transaction, so the copy is the state of one instant, and no write
 * waits for it.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { BackupError, maxBlockBytes, type SequenceCopy, type TableCopy } from './format.ts';
import type { BackupSink, BackupSource } from './block-store.ts';

/** The text format of COPY depends on these. */
const textFormat = `set datestyle = 'ISO'; set timezone = 'UTC'; set intervalstyle = 'postgres'`;
const schemas = ['public', 'drizzle'];
/** Blocks of a table are cut when their size exceeds this, at most one message of COPY later. */
const cutBytes = maxBlockBytes / 2;

/** Begins the transaction that all tables are read in. Its first query fixes the snapshot. */
export async function beginSnapshot(client: pg.Client): Promise<void> {
  await client.query(textFormat);
  await client.query('begin isolation level repeatable read read only');
}

/** Copies the rows of all tables to the sink. The caller has called `beginSnapshot`. */
export async function copyTables(client: pg.Client, sink: BackupSink): Promise<TableCopy[]> {
  const copies: TableCopy[] = [];
  for (const { schema, name, columns } of await tablesOf(client)) {
    const blocks: string[] = [];
    const stream = client.query(copyTo(`copy ${quoted(schema, name)} (${columns.map(quote).join(', ')}) to stdout`));
    let parts: Buffer[] = [];
    let bytes = 0;
    const cut = async () => {
      if (bytes > 0) blocks.push(await sink.putBlock(Buffer.concat(parts)));
      [parts, bytes] = [[], 0];
    };
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      parts.push(chunk);
      bytes += chunk.length;
      if (bytes > cutBytes) await cut();
    }
    await cut();
    copies.push({ schema, name, columns, rows: stream.rowCount, blocks });
  }
  return copies;
}

/** Sequences do not belong to a snapshot. Read after the tables, none is behind the rows. */
export async function copySequences(client: pg.Client): Promise<SequenceCopy[]> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `select schemaname as schema, sequencename as name from pg_sequences where schemaname = any ($1) order by 1, 2`,
    [schemas],
  );
  const copies: SequenceCopy[] = [];
  for (const { schema, name } of rows) {
    const { rows: state } = await client.query<{ last: string; called: boolean }>(
      `select last_value::text as last, is_called as called from ${quoted(schema, name)}`,
    );
    copies.push({ schema, name, last: state[0]!.last, isCalled: state[0]!.called });
  }
  return copies;
}

/**
 * Loads rows into the empty tables of the same schema, in the open transaction of the client.
 * @throws BackupError for a table that the schema does not have, or a number of rows that differs from the backup
 */
export async function loadTables(client: pg.Client, tables: TableCopy[], source: BackupSource): Promise<void> {
  await client.query(textFormat);
  const present = await tablesOf(client);
  const isSame = (a: Pick<Table, 'schema' | 'name'>, b: typeof a) => a.schema === b.schema && a.name === b.name;
  for (const copy of tables) {
    const { schema, name } = copy;
    if (present.some((table) => isSame(table, copy))) continue;
    throw new BackupError(`the backup has a table ${schema}.${name} that its schema does not have`);
  }
  // In the order of the foreign keys, which are checked after each table.
  for (const table of present) {
    const copy = tables.find((each) => isSame(each, table));
    if (!copy) continue;
    const { schema, name } = table;
    const columns = copy.columns.map(quote).join(', ');
    const target = client.query(copyFrom(`copy ${quoted(schema, name)} (${columns}) from stdin`));
    await pipeline(Readable.from(readBlocks(copy.blocks, source)), target);
    if (target.rowCount !== copy.rows) {
      throw new BackupError(
        `table ${schema}.${name} has ${target.rowCount} rows after the restore instead of ${copy.rows}`,
      );
    }
  }
}

/** Sets the sequences to the next values of the backup. @throws the error of PostgreSQL for an unknown sequence */
export async function setSequences(client: pg.Client, sequences: SequenceCopy[]): Promise<void> {
  for (const { schema, name, last, isCalled } of sequences) {
    await client.query('select setval($1::text::regclass, $2, $3)', [quoted(schema, name), last, isCalled]);
  }
}

async function* readBlocks(blocks: string[], source: BackupSource): AsyncGenerator<Buffer> {
  for (const hash of blocks) yield await source.block(hash);
}

interface Table {
  schema: string;
  name: string;
  /** Without generated columns. */
  columns: string[];
}

/** The tables, each after those that its foreign keys refer to. */
async function tablesOf(client: pg.Client): Promise<Table[]> {
  const { rows } = await client.query<Table & { oid: number; references: number[] }>(
    `select c.oid::int8 as oid, n.nspname as schema, c.relname as name,
       array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
         and attgenerated = '' order by attnum) as columns,
       array(select confrelid::int8 from pg_constraint where conrelid = c.oid and contype = 'f' and confrelid <> c.oid) as references
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname = any ($1) order by 2, 3`,
    [schemas],
  );
  const byOid = new Map(rows.map((row) => [row.oid, row]));
  const sorted = new Set<(typeof rows)[number]>();
  const visit = (row: (typeof rows)[number], above: number[]) => {
    if (above.includes(row.oid)) throw new Error(`the foreign keys of ${row.name} form a cycle`);
    for (const oid of row.references) if (byOid.has(Number(oid))) visit(byOid.get(Number(oid))!, [...above, row.oid]);
    sorted.add(row);
  };
  for (const row of rows) visit(row, []);
  return [...sorted].map(({ schema, name, columns }) => ({ schema, name, columns }));
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const quoted = (schema: string, name: string): string => `${quote(schema)}.${quote(name)}`;
