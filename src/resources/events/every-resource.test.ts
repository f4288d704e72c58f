/** Every table of every resource: whatever changes a row, by SQL here, is an event. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EventReader, readEvents } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { eventSources, resources } from '../list.ts';

/** Tables whose changes clients do not see, or see as the change of another table. */
const withoutEvents = [
  'acme_certificates',
  'acme_challenges',
  'audit_entries',
  'backup_runs',
  'host_observations',
  'host_readings',
  'hosts',
  'idempotency_keys',
  'jobs',
  'lb_listener_counters',
  'lb_listener_traffic',
  'load_balancer_traffic',
  'nfs_groups',
  'published_states',
  'quota_crossings',
  'registry_authority',
  'registry_blobs',
  'registry_events',
  'registry_hosts',
  'registry_pushes',
  'registry_removals',
  'revisions',
  'row_counts',
  'sessions',
  'user_action_deliveries',
];

const cloud = useCloudyard({ driver: null, audit: false });
let stream: EventReader;
beforeAll(async () => {
  // Rows here refer to nothing.
  const { rows } = await cloud.db.$client.query<{ drop: string }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop from pg_constraint
     where contype in ('f', 'c') and connamespace = 'public'::regnamespace and conrelid <> 0`,
  );
  for (const { drop } of rows) await cloud.db.$client.query(drop);
  stream = await readEvents(await cloud.app.listen({ port: 0, host: '127.0.0.1' }), cloud.admin);
});
afterAll(() => stream.close());

interface Column {
  name: string;
  type: string;
  isGenerated: boolean;
}

async function columnsOf(table: string): Promise<Column[]> {
  const { rows } = await cloud.db.$client.query<Column>(
    `select a.attname as name, format_type(a.atttypid, null) as type, a.attidentity <> '' as "isGenerated"
     from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [`public.${table}`],
  );
  return rows;
}

/** SQL for a value of a type; `n`: another value for another number. */
function valueOf({ name, type }: Column, n: number): string {
  // Of the operator, whose token reads the stream.
  if (['client_id', 'project_id', 'region_id'].includes(name)) return '1';
  if (name === 'deleted_at') return 'null';
  if (type.endsWith('[]'))
    return `array[${valueOf({ name, type: type.slice(0, -2), isGenerated: false }, n)}]::${type}`;
  if (/^(integer|bigint)$/.test(type)) return String(7_000_000 + n);
  if (type === 'boolean') return n % 2 === 0 ? 'true' : 'false';
  if (type === 'uuid') return `'00000000-0000-4000-8000-${String(n).padStart(12, '0')}'`;
  if (type.startsWith('timestamp')) return `timestamptz '2030-01-01' + ${n} * interval '1 second'`;
  if (/^jsonb?$/.test(type)) return `'{"n": ${n}}'`;
  if (type === 'bytea') return `'\\x0${n % 10}'`;
  if (type === 'cidr') return `'10.0.${n % 200}.0/24'`;
  if (type === 'text') return `'n${n}'`;
  throw new Error(`no value of the type ${type}`);
}

/** Inserts a row and returns its key as SQL. */
async function insert(table: string, n: number, given: Record<string, string> = {}): Promise<string> {
  const columns = await columnsOf(table);
  const { rows: keys } = await cloud.db.$client.query<{ name: string }>(
    `select a.attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
     where i.indrelid = $1::regclass and i.indisprimary`,
    [`public.${table}`],
  );
  const value = (column: Column) => given[column.name] ?? valueOf(column, n);
  await cloud.db.$client.query(
    `insert into "${table}" (${columns.map(({ name }) => `"${name}"`).join(', ')}) overriding system value
     values (${columns.map(value).join(', ')})`,
  );
  const of = (name: string) => columns.find((column) => column.name === name)!;
  return keys.map(({ name }) => `"${name}" = ${value(of(name))}`).join(' and ');
}

/** Updates one column that is neither in the key nor given. */
async function update(table: string, key: string, n: number, given: object, only?: readonly string[]): Promise<void> {
  const columns = await columnsOf(table);
  const fixed = ['id', 'client_id', 'project_id', 'region_id', 'deleted_at', ...Object.keys(given)];
  const column = columns.find(
    ({ name, isGenerated }) =>
      !isGenerated && !fixed.includes(name) && !key.includes(`"${name}"`) && (!only || only.includes(name)),
  );
  if (!column) return;
  await cloud.db.$client.query(`update "${table}" set "${column.name}" = ${valueOf(column, n)} where ${key}`);
}

async function eventsDuring(kind: string, work: () => Promise<void>): Promise<string[]> {
  const before = stream.received.length;
  await work();
  // An event of another kind that follows shows that all before it have arrived.
  const fence = `fence ${before} ${Math.random()}`;
  await cloud.db.$client.query(
    `insert into tasks (id, client_id, project_id, region_id, user_id, task_type, state, resource, resource_id, generation, created_on,
       updated_on) values (gen_random_uuid(), 1, 1, 1, 1, $1, 'FINISHED', 'fence', $1, 1, now(), now()) returning id`,
    [fence],
  );
  const { rows } = await cloud.db.$client.query<{ id: string }>('select id from tasks where resource_id = $1', [fence]);
  await stream.next({ kind: 'task', resource_id: rows[0]!.id });
  return stream.received
    .slice(before)
    .filter(({ data }) => data?.['kind'] === kind && data['resource_id'] !== rows[0]!.id)
    .map(({ data }) => String(data!['change']));
}

describe('every table', () => {
  it('has events, or is listed as one whose changes clients do not see', async () => {
    const { rows } = await cloud.db.$client.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
    );
    const declared = eventSources.map(({ table }) => table);
    expect(new Set(declared).size).toBe(declared.length);
    expect(rows.map(({ name }) => name).sort()).toEqual([...declared, ...withoutEvents].sort());
  });

  it('of a resource with operations belongs to a kind', () => {
    const silent = resources.filter(({ events }) => events.length === 0);
    // audit, hosts, pricing, sessions, sign-in and the stream itself.
    expect(silent.length).toBe(6);
  });
});

describe('a change in', () => {
  it.each(eventSources.map((source, i) => [source.table, source, 100 + i * 10] as const))(
    '%s is an event',
    async (table, { kind, owner, columns, updatesOnly, softDelete, silentRemoval }, n) => {
      let given = {};
      await eventsDuring(kind, async () => void (given = owner ? await arrangeOwner(table, n) : {}));
      const always = owner || updatesOnly;
      let key = '';
      const inserted = await eventsDuring(kind, async () => void (key = await insert(table, n + 1, given)));
      expect(inserted).toEqual([always ? 'updated' : 'created']);
      const updated = await eventsDuring(kind, () => update(table, key, n + 2, given, columns));
      const unchanged = await eventsDuring(kind, () => update(table, key, n + 2, given, columns));
      const isKeyOnly = table === 'lifecycle_policy_volumes';
      expect([updated, unchanged]).toEqual([isKeyOnly ? [] : ['updated'], []]);
      if (softDelete) {
        const marked = () => cloud.db.$client.query(`update "${table}" set deleted_at = now() where ${key}`);
        expect(await eventsDuring(kind, async () => void (await marked()))).toEqual(['deleted']);
      }
      const deleted = await eventsDuring(kind, async () => {
        await cloud.db.$client.query(`delete from "${table}" where ${key}`);
      });
      expect(deleted).toEqual(softDelete || silentRemoval ? [] : [always ? 'updated' : 'deleted']);
    },
  );
});

/** The rows that a part belongs to. Returns the columns of the part that refer to them. */
async function arrangeOwner(table: string, n: number): Promise<Record<string, string>> {
  const source = eventSources.find((each) => each.table === table)!;
  const owner = source.owner!.table;
  const columns = await columnsOf(owner);
  const id = valueOf(columns.find(({ name }) => name === 'id')!, n);
  await insert(owner, n, { id });
  const direct = /^c\.(\w+)$/.exec(source.owner!.id)?.[1];
  if (direct) return { [direct]: id };
  const [, back, via, by] = /select \w+\.(\w+) from public\.(\w+) .*= c\.(\w+)\)$/.exec(source.owner!.id)!;
  const between = valueOf((await columnsOf(via!)).find(({ name }) => name === 'id')!, n + 5);
  await insert(via!, n + 5, { id: between, [back!]: id });
  return { [by!]: between };
}
