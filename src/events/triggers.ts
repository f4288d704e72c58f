/**
 * The triggers that announce changes of resources with NOTIFY. They are installed after the migrations at every start, from
 * the declarations of the resources.
 *
 * Invariant: a trigger does nothing unless a server holds the lease (feed.ts): a NOTIFY makes commits wait for each other.
 * The lease is the value of a sequence, because reading one takes 1 µs, needs no snapshot and sees the current value.
 *
 * A transaction announces equal changes of one resource once, because PostgreSQL drops equal notifications.
 */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { EventSource } from './source.ts';

export const channel = 'cloudyard_events';
const schema = 'cloudyard_events';
/** Seconds since 1970 until which changes are announced. */
export const leaseSequence = `${schema}.lease`;
const triggerName = 'cloudyard_event';

/** SQL: whether a server holds the lease. `now`: an SQL time. */
export const isLeased = (now: string) =>
  `coalesce(pg_sequence_last_value('${leaseSequence}'::regclass), 0) > extract(epoch from ${now})`;

/**
 * Creates missing functions and triggers; takes no lock on a table that has its trigger. Tables of other owners are ignored,
 * as for the audit log. Its caller holds the lock of migrations.
 */
export async function installEventTriggers(client: pg.Client, sources: readonly EventSource[]): Promise<void> {
  const { rows: found } = await client.query(`select to_regclass('${leaseSequence}') as name`);
  if (found[0]!.name === null) {
    await client.query(`create schema if not exists ${schema}; create sequence if not exists ${leaseSequence}`);
  }
  const { rows } = await client.query<{ name: string; columns: string[]; trigger: string | null }>(
    `select c.relname as name, (select pg_get_triggerdef(t.oid) from pg_trigger t
        where t.tgrelid = c.oid and t.tgname = '${triggerName}') as trigger,
       array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
        and not a.attisdropped) as columns
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
       and pg_has_role(c.relowner, 'usage')`,
  );
  const tables = new Map(rows.map((row) => [row.name, row]));
  for (const source of sources) {
    const table = tables.get(source.table);
    const owner = tables.get(source.owner?.table ?? source.table);
    if (!table || !owner) continue;
    const body = functionOf(source, owner.columns);
    const condition = isLeased('now()');
    const operations = source.silentRemoval ? 'insert or update' : 'insert or update or delete';
    const hash = createHash('sha256').update(body).update(condition).update(operations).digest('hex').slice(0, 8);
    const name = `${schema}.${source.table}_${hash}`;
    if (table.trigger?.endsWith(`${name}()`)) continue;
    await client.query(
      `create or replace function ${name}() returns trigger language plpgsql as $cloudyard$ ${body} $cloudyard$;
       create or replace trigger ${triggerName} after ${operations} on public."${source.table}"
       for each row when (${condition}) execute function ${name}()`,
    );
  }
}

/**
 * PL/pgSQL. `c` is the changed row, and `r` the row of the resource. `columns`: those of the table of `r`. Rows are compared
 * by their bytes (`*=`), because columns of type `json` have no equality.
 */
function functionOf(source: EventSource, columns: string[]): string {
  const { table, kind, owner, softDelete, updatesOnly } = source;
  const row = (of: string) => `row(${source.columns?.map((name) => `${of}.${name}`).join(', ')})`;
  const isSame = source.columns ? `${row('old')} is not distinct from ${row('new')}` : 'old *= new';
  const change = owner || updatesOnly ? `'updated'` : 'v_change';
  return `
declare
  c public."${table}"%rowtype;
  r public."${owner?.table ?? table}"%rowtype;
  v_change text := case tg_op when 'INSERT' then 'created' when 'DELETE' then 'deleted' else 'updated' end;
begin
  if tg_op = 'DELETE' then c := old; else c := new; end if;
  if tg_op = 'UPDATE' then
    if ${isSame} then return null; end if;
    ${softDelete ? `if old.deleted_at is null and new.deleted_at is not null then v_change := 'deleted'; end if;` : ''}
  end if;
  ${softDelete ? `if c.deleted_at is not null and (tg_op <> 'UPDATE' or v_change <> 'deleted') then return null; end if;` : ''}
  ${owner ? `select * into r from public."${owner.table}" where id = ${owner.id};\n  if r.id is null then return null; end if;` : 'r := c;'}
  perform pg_notify('${channel}', concat_ws(' ', pg_current_xact_id(), (extract(epoch from now()) * 1000)::bigint,
    '${kind}', ${change}, ${fieldsOf(source, columns).join(', ')}));
  return null;
end`;
}

/** SQL: client, project, region, task and ID, in the order of `parseEvent`; `-` where there is none. */
function fieldsOf(source: EventSource, columns: string[]): string[] {
  const { kind, id = 'r.id', taskResource = id } = source;
  const has = (column: string) => columns.includes(column);
  const orNone = (sql: string) => `coalesce((${sql})::text, '-')`;
  const project = source.project ?? (has('project_id') ? 'r.project_id' : 'null');
  const client =
    kind === 'client'
      ? 'r.id'
      : has('client_id')
        ? 'r.client_id'
        : has('project_id')
          ? 'select p.client_id from public.projects p where p.id = r.project_id'
          : 'null';
  const active = `select t.id from public.tasks t where t.resource_id = (${taskResource})::text
      and t.state in ('NEW', 'RUNNING') order by t.created_on limit 1`;
  const created = has('creator_task_id') ? `case when tg_op = 'INSERT' then r.creator_task_id end, ` : '';
  const task = kind === 'task' ? 'r.id' : has('project_id') ? `coalesce(${created}(${active}))` : 'null';
  return [
    orNone(client),
    orNone(project),
    // Quotas without a region have the region 0.
    orNone(kind === 'region' ? 'r.id' : has('region_id') ? 'nullif(r.region_id, 0)' : 'null'),
    orNone(task),
    `(${id})::text`,
  ];
}
