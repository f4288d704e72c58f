import type { Db } from '../src/platform/db.ts';

/** All rows of all tables as text, by `schema.table`. */
export async function dumpTables(db: Db): Promise<[table: string, rows: string][]> {
  const { rows: tables } = await db.$client.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  const texts: [string, string][] = [];
  for (const { name } of tables) {
    const { rows } = await db.$client.query<{ text: string }>(`select to_jsonb(t)::text as text from ${name} t`);
    texts.push([name, rows.map((row) => row.text).join('\n')]);
  }
  return texts;
}

/** The tables with a row that contains one of the texts, sorted. */
export async function tablesContaining(db: Db, ...texts: string[]): Promise<string[]> {
  const found = (await dumpTables(db)).filter(([, rows]) => texts.some((text) => rows.includes(text)));
  return found.map(([table]) => table).sort();
}
