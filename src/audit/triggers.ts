/**
 * The triggers that record changes for the audit log. They are installed on all tables after the migrations at every start,
 * so a new table is audited without further code.
 *
 * In a transaction without the setting `cloudyard.audit`, a trigger only reads that setting. In a transaction with it,
 * changes collect in a transaction-local setting, and `audit.transaction` writes them at its end: collecting them in a
 * table would cost an insert for each row.
 */
import type pg from 'pg';

/** Tables of counters and of the state of workers and servers. */
const unaudited = [
  'audit_entries',
  'quota_crossings',
  'idempotency_keys',
  'jobs',
  'revisions',
  'row_counts',
  'workers',
  'lb_listener_counters',
  'load_balancer_traffic',
  'lb_listener_traffic',
  'file_share_usage',
  'user_action_deliveries',
  'lifecycle_policy_missed_runs',
  'backup_runs',
  'published_states',
  'host_observations',
  'host_readings',
];
/** Tables of which only these events are audited: the others occur with every request. */
const events: Record<string, string> = {
  quota_counters: 'insert or update of limit_override or delete',
  tasks: 'update of acknowledged_at',
};
const everyEvent = 'insert or update or delete';
/** Columns of secrets whose type is not `bytea`: URLs, which may contain secrets, and password hashes. */
const secretColumns: Record<string, string[]> = {
  lb_listeners: ['user_list'],
  notification_deliveries: ['target'],
  user_action_subscriptions: ['url'],
  webhooks: ['url'],
};

/**
 * Columns of type `bytea` (encrypted or hashed) and `secretColumns` are secrets: the entry shows that they changed, but no
 * value. They are the arguments of the trigger. A row that is marked as deleted is recorded whole, like a deleted row, and so is
 * a row without an ID, whose columns identify it. After 256 KiB of changes the rest is omitted and a last change marks
 * the omission; from then on the trigger returns at once.
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
    if was -> 'deleted_at' = 'null' or id is null then was := to_jsonb(old); end if;
    if id is null then is_now := to_jsonb(new); end if;
  end if;
  foreach secret in array coalesce(tg_argv, '{}') loop
    if jsonb_typeof(was -> secret) <> 'null' then was := was || jsonb_build_object(secret, '[redacted]'); end if;
    if jsonb_typeof(is_now -> secret) <> 'null' then is_now := is_now || jsonb_build_object(secret, '[redacted]'); end if;
  end loop;
  perform set_config('cloudyard.changes', so_far || jsonb_build_object(
    'table', tg_table_name, 'id', id, 'before', was, 'after', is_now)::text || ',', true);
  return null;
end $$`;

/** The function that wrote entries in 0.2.0. */
const oldEntryFunction = 'cloudyard_audit_entry(timestamptz, int, int, int, int, text, text, jsonb, boolean, jsonb)';

interface Table {
  name: string;
  bytes: string[];
  trigger: string | null;
}

/** Installs missing triggers; takes no lock on a table that has its trigger. */
export async function installAuditTriggers(client: pg.Client): Promise<void> {
  await client.query(auditFunction);
  await client.query(`drop function if exists ${oldEntryFunction}`);
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
