/**
 * Finds changes of a schema that break servers of the previous release, which may run during an upgrade: migration-lint.ts
 * reads the statements of one migration, and this compares the results of all of them.
 */
import type pg from 'pg';

interface Column {
  table: string;
  name: string;
  type: string;
  isNullable: boolean;
  hasDefault: boolean;
}

export async function columnsOf(client: pg.Client): Promise<Column[]> {
  const { rows } = await client.query<Column>(
    `select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
       not a.attnotnull as "isNullable", a.atthasdef or a.attidentity <> '' as "hasDefault"
     from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
     order by 1, 2`,
  );
  return rows;
}

/** What servers that know only `before` do not expect of `after`, one line each. */
export function changesBetween(before: Column[], after: Column[]): string[] {
  const keyOf = ({ table, name }: Column) => `${table}.${name}`;
  const later = new Map(after.map((column) => [keyOf(column), column]));
  const earlier = new Map(before.map((column) => [keyOf(column), column]));
  const tables = new Set(before.map(({ table }) => table));
  const accepts = ({ isNullable, hasDefault }: Column) => isNullable || hasDefault;
  const changed = before.flatMap((column) => {
    const key = keyOf(column);
    const now = later.get(key);
    if (!now) return [`${key} was dropped`];
    if (now.type !== column.type) return [`${key} was ${column.type} and is ${now.type}`];
    const isStricter = (column.isNullable && !now.isNullable) || (accepts(column) && !accepts(now));
    return isStricter ? [`${key} requires a value now`] : [];
  });
  const added = after.filter((column) => tables.has(column.table) && !earlier.has(keyOf(column)) && !accepts(column));
  return [...changed, ...added.map((column) => `${keyOf(column)} is new and requires a value`)];
}

/** The statements that PostgreSQL cannot plan on this schema, with its error. */
export async function refusedStatements(client: pg.Client, statements: string[]): Promise<string[]> {
  const refused: string[] = [];
  for (const text of statements) {
    try {
      await client.query(`prepare candidate as ${text}`);
      await client.query('deallocate candidate');
    } catch (error) {
      refused.push(`${(error as Error).message}: ${text.slice(0, 200)}`);
    }
  }
  return refused;
}
