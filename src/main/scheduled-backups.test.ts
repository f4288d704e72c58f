import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it, onTestFinished, vi } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { readBackupDirectory } from '../backup/block-store.ts';
import { backupState, dueInstant, lateAfterMs, latenessMs } from '../backup/schedule.ts';
import { systemClock } from '../platform/clock.ts';
import { connect, type Db, type Tx } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { createNotifications, type Message } from '../resources/notifications/service.ts';
import { parseBackupSchedule } from './backup-schedule.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { createScheduledBackups } from './scheduled-backups.ts';
import { readSettings } from './settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-scheduled-'));
const places = checkoutPlaces(process.cwd());
let database: Awaited<ReturnType<typeof cloneDatabase>>;
let db: Db;
let now = new Date('2026-11-22T12:10:00Z');

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
  db = connect({ ...database.connection, log: silentLogger });
});
afterAll(async () => {
  await db.$client.end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

const hourly = (() => {
  const parsed = parseBackupSchedule('0 * * * *', now);
  if ('error' in parsed) throw new Error(parsed.error);
  return parsed.next;
})();

function backupsInto(dir: string, messages: Message[] = [], env: Record<string, string> = {}) {
  const settings = readSettings(
    { CLOUDYARD_BACKUP_DIR: dir, CLOUDYARD_BACKUP_KEEP: '2', CLOUDYARD_DATA_DIR: folder, ...env },
    places,
    false,
  );
  const { issue, issueOnce } = createNotifications({ db, clock: systemClock } as never);
  const record = async (tx: Tx, message: Message) => {
    messages.push(message);
    return issue(tx, message);
  };
  return createScheduledBackups({
    ...{ settings, next: hourly, db, connection: database.connection, log: silentLogger, operatorId: 1 },
    ...{ notifications: { issue: record, issueOnce }, now: () => now },
  });
}

const { signal } = new AbortController();
const manifests = (dir: string) => readdirSync(dir).filter((name) => /^\d.*\.json$/.test(name));

it('one of several servers makes each backup, and the newest ones are retained', async () => {
  const dir = join(folder, 'kept');
  const servers = [backupsInto(dir), backupsInto(dir)];
  const all = () => Promise.all(servers.map((server) => server(signal)));
  await all();
  expect((await backupState(db, now)).lastSuccess).toBeNull();
  for (let hour = 1; hour <= 4; hour++) {
    now = new Date(now.getTime() + 3_600_000);
    await all();
    await all();
    expect(manifests(dir)).toHaveLength(Math.min(hour, 2));
  }
  const { rows } = await db.$client.query('select count(*)::int as count from backup_runs where backup_id is not null');
  expect(rows).toEqual([{ count: 4 }]);
  // A downtime of hours is made up for once.
  now = new Date(now.getTime() + 5 * 3_600_000);
  await all();
  await all();
  expect((await backupState(db, now)).lastSuccess!.scheduledAt).toEqual(new Date('2026-11-22T21:00:00Z'));
  const { rows: after } = await db.$client.query('select count(*)::int as count from backup_runs');
  expect(after).toEqual([{ count: 5 }]);
});

it('a backup that fails is recorded and reported, and so is one that is late, once by all servers', async () => {
  await db.$client.query('delete from notifications');
  const dir = join(folder, 'a file');
  writeFileSync(dir, '');
  const messages: Message[] = [];
  const [server, other] = [backupsInto(dir, messages), backupsInto(dir, messages)];
  now = new Date(now.getTime() + 3_600_000);
  await server(signal);
  await server(signal);
  expect(messages).toMatchObject([
    { clientId: 1, type: 'backup_failed', data: { scheduled_at: '2026-11-22T22:00:00.000Z' } },
  ]);
  expect((await backupState(db, now)).lastError).toContain('cannot be written to');
  now = new Date(now.getTime() + lateAfterMs);
  await Promise.all([server(signal), other(signal)]);
  await server(signal);
  // A server that was started again.
  await backupsInto(dir, messages)(signal);
  expect(messages.map(({ type }) => type)).toEqual(['backup_failed', 'backup_failed']);
  const { rows } = await db.$client.query(`select client_id from notifications where type = 'backup_late'`);
  expect(rows).toEqual([{ client_id: 1 }]);
});

it('a damaged backup in the directory keeps old ones from being removed, and the new one succeeds', async () => {
  const dir = join(folder, 'damaged');
  now = new Date(now.getTime() + 3_600_000);
  const server = backupsInto(dir);
  await server(signal);
  writeFileSync(join(dir, '20200101T000000.000Z.json'), 'cut short');
  for (let hour = 1; hour <= 2; hour++) {
    now = new Date(now.getTime() + 3_600_000);
    await server(signal);
    expect(await backupState(db, now)).toMatchObject({
      lastError: null,
      lastSuccess: { scheduledAt: hourly(new Date(now.getTime() - 3_600_000)) },
    });
  }
  expect(manifests(dir)).toHaveLength(4);
});

it('a backup with the data of tenants is made by a process that has them', async () => {
  now = new Date(now.getTime() + 3_600_000);
  const dir = join(folder, 'with data');
  const ofWorker = join(folder, 'worker');
  mkdirSync(join(ofWorker, 'volumes', 'images'), { recursive: true });
  writeFileSync(join(ofWorker, 'volumes', 'images', 'one.raw'), 'data');
  const server = backupsInto(dir, [], { CLOUDYARD_BACKUP_WITH_DATA: '1' });
  const worker = backupsInto(dir, [], { CLOUDYARD_BACKUP_WITH_DATA: '1', CLOUDYARD_DATA_DIR: ofWorker });
  await server(signal);
  await worker(signal);
  const store = await readBackupDirectory(dir);
  const [id] = await store.list();
  expect((await store.manifest(id!)).files).toContainEqual(expect.objectContaining({ path: 'volumes/images/one.raw' }));
});

it('without a worker that has the data, a late backup is made without it, and the newest with data is retained', async () => {
  await db.$client.query('delete from notifications');
  const dir = join(folder, 'with data');
  const store = await readBackupDirectory(dir);
  const [withData] = await store.list();
  const server = backupsInto(dir, [], { CLOUDYARD_BACKUP_WITH_DATA: '1' });
  for (let made = 1; made <= 3; made++) {
    now = new Date(now.getTime() + 3_600_000);
    await server(signal);
    await server(signal);
    expect(await store.list()).toHaveLength(Math.min(made, 3));
    now = new Date(now.getTime() + lateAfterMs);
    await server(signal);
  }
  const kept = await Promise.all((await store.list()).map((id) => store.manifest(id)));
  expect(kept.map(({ id, files }) => [id, files === null])).toEqual([
    [withData, false],
    ...kept.slice(1).map(({ id }) => [id, true]),
  ]);
  expect(kept).toHaveLength(3);
  const { rows } = await db.$client.query(`select body from notifications where type = 'backup_late'`);
  expect(rows).toHaveLength(3);
  expect(JSON.stringify(rows[0])).toContain('it is made without them');
});

it('after the clock was set back, backups are made and retained', async () => {
  const dir = join(folder, 'set back');
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = backupsInto(dir);
  const atNextHour = async (from: Date) => {
    now = new Date(from.getTime() + 3_600_000);
    vi.setSystemTime(now);
    await server(signal);
    return manifests(dir);
  };
  const before = now;
  let ahead = new Date('2036-01-01T00:10:00Z');
  for (let hour = 0; hour < 2; hour++) {
    await atNextHour(ahead);
    ahead = now;
  }
  expect(manifests(dir).map((name) => name.slice(0, 4))).toEqual(['2036', '2036']);
  now = before;
  expect((await atNextHour(now)).map((name) => name.slice(0, 4))).toEqual(['2026', '2036']);
  expect((await atNextHour(now)).map((name) => name.slice(0, 4))).toEqual(['2026', '2026']);
  const newest = manifests(dir).at(-1);
  expect((await atNextHour(now))[0]).toBe(newest);
  const due = hourly(new Date(now.getTime() - 3_600_000));
  expect(await backupState(db, now)).toMatchObject({ lastSuccess: { scheduledAt: due } });
  now = new Date(now.getTime() + 2 * 3_600_000);
  const { lastSuccess, lastError } = await backupState(db, now);
  expect(latenessMs(hourly, { lastSuccess, lastError }, now, now)).toBeGreaterThan(lateAfterMs);
});

it('a run whose process died is made by another one', async () => {
  now = new Date(now.getTime() + 3_600_000);
  const due = hourly(new Date(now.getTime() - 3_600_000))!;
  await db.$client.query(`insert into backup_runs (scheduled_at, started_at, host) values ($1, now(), 'dead')`, [due]);
  await backupsInto(join(folder, 'again'))(signal);
  expect((await backupState(db, now)).lastSuccess!.scheduledAt).toEqual(due);
});

it('the newest instant that was missed is due, also after years of a schedule of minutes', () => {
  const everyMinute = (after: Date) => new Date(Math.floor(after.getTime() / 60_000) * 60_000 + 60_000);
  const at = new Date('2026-11-22T12:10:30Z');
  expect(dueInstant(everyMinute, new Date('2016-01-01'), at, at)).toEqual(new Date('2026-11-22T12:10:00Z'));
  expect(dueInstant(hourly, new Date('2026-11-22T12:00:00Z'), at, at)).toBeNull();
  expect(dueInstant(hourly, null, at, at)).toBeNull();
  // Rare: the instant was due before the last day.
  const yearly = (after: Date) => new Date(Date.UTC(after.getUTCFullYear() + 1, 0, 1));
  expect(dueInstant(yearly, new Date('2025-06-01'), at, at)).toEqual(new Date('2026-01-01'));
});

it.each([
  ['* * * *', 'must be MINUTE HOUR'],
  ['0 3 * * 0', 'must name weekdays'],
  ['61 3 * * *', 'minute'],
  ['0 3 * * * Mars/Olympus', 'timezone'],
  ['0 3 31 2 *', 'never fires'],
])('the schedule %j is refused: %s', (text, error) => {
  expect(() => readSettings({ CLOUDYARD_BACKUP_SCHEDULE: text }, places, false)).toThrow(
    new RegExp(`CLOUDYARD_BACKUP_SCHEDULE .*${error}`),
  );
});

it('fields of the schedule are those of a crontab, in a zone', () => {
  const parsed = parseBackupSchedule('30 */6 * * mon-fri Europe/Berlin', now);
  expect('next' in parsed && parsed.next(new Date('2026-11-21T00:00:00Z'))).toEqual(new Date('2026-11-22T23:30:00Z'));
});
