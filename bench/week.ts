/**
 * A week in fast motion: every day a client creates and deletes shares, and is notified; then a day passes on the clock of
 * development mode, and the housekeeping of workers runs, which waits for an hour of real time otherwise. The
 * tables have the same size at the end of every day.
 */
import { createAudit } from '../src/audit/audit.ts';
import { connect, type Db } from '../src/platform/db.ts';
import { silentLogger } from '../src/platform/log.ts';
import { removeOldNotifications } from '../src/resources/notifications/retention.ts';
import { removeEndedTasks } from '../src/tasks/retention.ts';
import { type Cloudyard, ended, startCloudyard } from './cloudyard.ts';
import { newShare, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const days = 9;
/** From then on each day removes as much as it adds. */
const firstFullDay = 3;
const roundsOfDay = 25;
const sharesOfRound = 20;
const daySeconds = 86_400;
/** At the end of a day, what this day added is younger, and what the day before added is older. */
const keepDays = 1.5;
const tables = ['tasks', 'notifications', 'notification_deliveries', 'audit_entries', 'jobs', 'quota_crossings'];

interface Size {
  table: string;
  rows: number;
  bytes: number;
}

export async function week(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start', settings });
  const db = connect({ ...cloudyard.database, name: 'bench', poolSize: 2, log: silentLogger });
  workplace.closing(() => db.$client.end());
  await alertEachRound(cloudyard);
  const sizes: Size[][] = [];
  for (let day = 1; day <= days; day++) {
    for (let round = 0; round < roundsOfDay; round++) await createAndDelete(cloudyard);
    const { now } = await cloudyard.request('POST', '/cloudyard/v1/dev/clock', { advance_seconds: daySeconds });
    await removeOld(db, new Date(now));
    // As autovacuum does in the course of a day.
    await db.$client.query(`vacuum ${tables.join(', ')}`);
    sizes.push((await db.$client.query<Size>(sizesOfTables)).rows);
  }
  return tables.flatMap((table) => rowsOf(table, sizes));
}

const settings = {
  CLOUDYARD_DEV: '1',
  CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: '0',
  CLOUDYARD_WEBHOOK_DRIVER: 'simulated',
};

/** The shares of a round cross the threshold, and their deletion resets it. */
async function alertEachRound({ request }: Cloudyard): Promise<void> {
  const limits = { region_id: 1, sfs_count_limit: sharesOfRound, sfs_size_limit: 1_000_000 };
  await request('PATCH', '/cloudyard/v1/clients/1/quotas', limits);
  await request('POST', '/cloudyard/v1/clients/1/webhooks', { url: 'https://hooks.example.com/' });
  await request('PUT', '/cloud/v2/client_quotas/1/notification_threshold', { threshold: 50 });
}

async function createAndDelete(cloudyard: Cloudyard): Promise<void> {
  const { request } = cloudyard;
  const share = await newShare(cloudyard);
  const all = Array.from({ length: sharesOfRound }, async () => {
    const task = await ended(cloudyard, await request('POST', sharesPath, share));
    return task.created_resources.file_shares[0] as string;
  });
  const ids = await Promise.all(all);
  await Promise.all(ids.map(async (id) => ended(cloudyard, await request('DELETE', `${sharesPath}/${id}`))));
}

/** What the housekeeping of workers does, in main/work.ts. */
async function removeOld(db: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - keepDays * daySeconds * 1000);
  await removeEndedTasks(db, before);
  await removeOldNotifications(db, before);
  await createAudit({ clock: { now: () => now }, keepDays }).deleteExpired(db);
}

const sizesOfTables = tables
  .map(
    (table) => `select '${table}' as table, (select count(*)::int from ${table}) as rows,
      pg_total_relation_size('${table}')::int as bytes`,
  )
  .join(' union all ');

function rowsOf(table: string, sizes: Size[][]): Row[] {
  const of = (day: number) => sizes[day - 1]!.find((size) => size.table === table)!;
  const [first, last] = [of(firstFullDay), of(days)];
  const text = ({ rows, bytes }: Size) => `${rows} rows, ${Math.round(bytes / 1024)} KiB`;
  // A table that is empty at the end of a day has a ratio of 1.
  const ratios = { rows: (last.rows + 1) / (first.rows + 1), bytes: last.bytes / first.bytes };
  return (['rows', 'bytes'] as const).map((what) => ({
    what: `${what} of ${table}, day ${days} / day ${firstFullDay}`,
    ...{ measured: text(last), peer: text(first), values: [ratios[what]] },
    unit: 'ratio',
    bar: { atMost: what === 'rows' ? 1.05 : 1.2 },
  }));
}
