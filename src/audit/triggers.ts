/**
 * The triggers that tell the audit log what changed, and the function that writes it down. They are put in place after
 * the migrations at every start, on all tables there are, so a table that comes to be is audited without a line anywhere.
 *
 * In a transaction without `cloudyard.audit` a trigger costs the look at that setting. In one with it, changes pile up in
 * a setting that ends with the transaction, and `audit.transaction` has them written out at its end: a table would cost
 * an insert a row.
 */
import type pg from 'pg';

/** What only counts, or says what workers and servers do. */
const unaudited = [
  'audit_entries',
  'quota_crossings',
  'idempotency_keys',
  'revisions',
  'row_counts',
  'workers',
  'lb_listener_counters',
  'load_balancer_traffic',
];
/** Of these only some changes are of interest: the others come with every request. */
const events: Record<string, string> = {
  quota_counters: 'insert or update of limit_override or delete',
  tasks: 'update of acknowledged_at',
};
const everyEvent = 'insert or update or delete';
/** Secrets that are not bytes: what may stand in a URL, and hashes of passwords. */
const secretColumns: Record<string, string[]> = {
  lb_listeners: ['user_list'],
  notification_deliveries: ['target'],
  webhooks: ['url'],
};

/**
 * Columns of bytes are secrets, encrypted or hashed, and so are `secretColumns`: that they changed is told, and nothing
 * more. They are the trigger's arguments. A row that is marked as deleted is told whole, like one that is removed. After
 * 256 KiB of changes the rest is left out, and a last one says so; from then on a row costs next to nothing.
 */
const auditFunction = `
create or replace function cloudyard_audit() returns trigger language plpgsql as $$
declare
  so_far text;
  cut constant text := '{"table": "…", "id": null, "before": null, "after": null},';
  was jsonb; is_now jsonb; id jsonb; secret text;
begin
  if current_setting('cloudyard.changes_cut', true) = 'on' then return null; end if;
  so_far := coalesce(current_setting('cloudyard.changes', true), '');
  if octet_length(so_far) > 262144 then
    perform set_config('cloudyard.changes', so_far || cut, true), set_config('cloudyard.changes_cut', 'on', true);
    return null;
  end if;
  if tg_op <> 'INSERT' then was := to_jsonb(old); end if;
  if tg_op <> 'DELETE' then is_now := to_jsonb(new); end if;
  id := coalesce(is_now, was) -> 'id';
  if tg_op = 'UPDATE' then
    select jsonb_object_agg(a.key, a.value), jsonb_object_agg(a.key, b.value) into was, is_now
      from jsonb_each(was) a join jsonb_each(is_now) b on b.key = a.key and b.value is distinct from a.value;
    if was is null then return null; end if;
    if was -> 'deleted_at' = 'null' then was := to_jsonb(old); end if;
  end if;
  foreach secret in array coalesce(tg_argv, '{}') loop
    if jsonb_typeof(was -> secret) <> 'null' then was := was || jsonb_build_object(secret, '[redacted]'); end if;
    if jsonb_typeof(is_now -> secret) <> 'null' then is_now := is_now || jsonb_build_object(secret, '[redacted]'); end if;
  end loop;
  perform set_config('cloudyard.changes', so_far || jsonb_build_object(
    'table', tg_table_name, 'id', id, 'before', was, 'after', is_now)::text || ',', true);
  return null;
end $$`;

/** Writes the entry of a transaction with what piled up. */
const entryFunction = `
create or replace function cloudyard_audit_entry(
  at timestamptz, client_id int, project_id int, region_id int, token_id int, operation text, request_id text,
  origin jsonb, always boolean, told jsonb) returns void language plpgsql as $$
declare
  changes text := coalesce(current_setting('cloudyard.changes', true), '');
begin
  if not always and changes = '' and told = '[]' then return; end if;
  insert into audit_entries (at, client_id, project_id, region_id, token_id, operation, request_id, origin, changes)
  values (at, client_id, project_id, region_id, token_id, operation, request_id, origin,
    told || ('[' || rtrim(changes, ',') || ']')::jsonb);
end $$`;

interface Table {
  name: string;
  bytes: string[];
  trigger: string | null;
}

/** Puts in place what is missing; asks for no lock on a table that has its trigger. */
export async function installAuditTriggers(client: pg.Client): Promise<void> {
  await client.query(auditFunction);
  await client.query(entryFunction);
  const { rows } = await client.query<Table>(
    `select c.relname as name, (select pg_get_triggerdef(t.oid) from pg_trigger t
        where t.tgrelid = c.oid and t.tgname = 'cloudyard_audit') as trigger,
       array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.atttypid = 'bytea'::regtype
        and a.attnum > 0 and not a.attisdropped order by 1) as bytes
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all ($1)
       and pg_has_role(c.relowner, 'usage')`,
    [unaudited],
  );
  for (const { name, bytes, trigger } of rows) {
    const secrets = [...bytes, ...(secretColumns[name] ?? [])];
    const call = `cloudyard_audit(${secrets.map((column) => `'${column}'`).join(', ')})`;
    if (trigger?.endsWith(call)) continue;
    await client.query(
      `create or replace trigger cloudyard_audit after ${events[name] ?? everyEvent} on "${name}"
       for each row when (current_setting('cloudyard.audit', true) = 'on') execute function ${call}`,
    );
  }
}
