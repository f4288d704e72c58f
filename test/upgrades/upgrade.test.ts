/** The upgrade of a database of each release, with one example of each resource, pending jobs and pending deliveries. */
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { migrate } from '../../src/main/migrate.ts';
import type { ConnectionOptions } from '../../src/platform/db.ts';
import { createKeyring } from '../../src/platform/encryption.ts';
import { type Cloudyard, openCloudyard } from '../harness.ts';
import { inDatabase } from '../postgres.ts';
import { createReleasedSchema, fixtureKey, fixtureToken, jobsOf, loadRelease, readRelease } from './release.ts';
import { changesBetween, columnsOf, refusedStatements } from './schema-changes.ts';
import { differences } from './differences.ts';

const server = inject('postgres');

async function withClient<T>(connection: ConnectionOptions, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(connection);
  await client.connect();
  return work(client).finally(() => client.end());
}

/** Runs `fill` in a new database. */
async function newDatabase(name: string, fill: (client: pg.Client) => Promise<void>) {
  const asAdmin = (text: string) => withClient(server, async (client) => void (await client.query(text)));
  await asAdmin(`create database ${name}`);
  const connection = inDatabase(server, name);
  await withClient(connection, fill);
  return { connection, drop: () => asAdmin(`drop database if exists ${name} with (force)`) };
}

describe('an upgrade from 0.2.0', () => {
  const release = readRelease('0.2.0');
  let cloud: Cloudyard;
  let stop: () => Promise<void>;
  let before: { deliveries: string[]; tasks: string[] };

  const pendingOf = (client: pg.Client) => async (text: string) =>
    (await client.query<{ id: string }>(text)).rows.map(({ id }) => id);

  beforeAll(async () => {
    const database = await newDatabase(`upgrade_${process.pid}`, async (client) => {
      await createReleasedSchema(client, '0000_initial');
      await loadRelease(client, '0.2.0');
    });
    before = await withClient(database.connection, async (client) => {
      const ids = pendingOf(client);
      return {
        deliveries: await ids(`select id from notification_deliveries where state = 'pending' order by 1`),
        tasks: await ids(`select id from tasks where state in ('NEW', 'RUNNING') order by 1`),
      };
    });
    await migrate(database.connection);
    const keyring = createKeyring([fixtureKey]);
    const opened = await openCloudyard(server, { driver: null, existing: { database, keyring, token: fixtureToken } });
    ({ cloudyard: cloud, stop } = opened);
    cloud.clock.set(release.at);
  });
  afterAll(() => stop?.());

  it('has an example of each resource that the release had', () => {
    const paths = release.answers.map(({ path }) => path.replace(/[0-9a-f-]{36}|\d+(?=\/|$)/g, '*'));
    expect(new Set(paths).size).toBeGreaterThan(50);
    expect(before.tasks.length).toBeGreaterThan(4);
    expect(before.deliveries.length).toBeGreaterThan(0);
  });

  it('keeps every field of every response', async () => {
    const changed: string[] = [];
    for (const { path, body } of release.answers) {
      const answer = await cloud.get(path);
      const found = answer.status === 200 ? differences(body, answer.body) : [`status ${answer.status}`];
      changed.push(...found.map((difference) => `${path.replaceAll(/[0-9a-f-]{36}/g, '*')}: ${difference}`));
    }
    expect(changed).toEqual([]);
  });

  it('keeps the pending jobs and deliveries', async () => {
    const { rows } = await cloud.db.$client.query('select kind, id, queue from jobs order by kind, id');
    const key = ({ identifier, payload: { resource, id, client_id } }: ReturnType<typeof jobsOf>[number]) => ({
      kind: resource ?? identifier,
      id: String(id ?? client_id),
      queue: resource ? identifier.replace('reconcile:', 'region:') : 'notifications',
    });
    const sorted = (jobs: { kind: string; id: string }[]) =>
      jobs.sort((a, b) => `${a.kind} ${a.id}`.localeCompare(`${b.kind} ${b.id}`));
    expect(sorted(rows)).toEqual(sorted(jobsOf('0.2.0').map(key)));
    expect(rows.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['deliver', 'quota_alert', 'file_share']));
  });

  it('finishes the pending tasks, and sends the pending deliveries', async () => {
    await cloud.startWorker();
    for (const id of before.tasks) {
      expect(await cloud.get(`/cloud/v1/tasks/${id}?wait=20`)).toMatchObject({ body: { id, state: 'FINISHED' } });
    }
    const pending = `select id, state from notification_deliveries where id = any ($1) and state = 'pending'`;
    await vi.waitFor(
      async () => expect((await cloud.db.$client.query(pending, [before.deliveries])).rows).toEqual([]),
      { timeout: 30_000, interval: 100 },
    );
    const { parameters } = release;
    const share = await cloud.get(`/cloud/v1/file_shares/1/1/${parameters['file_share_id']}`);
    expect(share.body).toMatchObject({ size: 3, status: 'available' });
    const { results } = (await cloud.get('/cloudyard/v1/clients/1/notifications')).body;
    // The pending crossing of the release is one more message.
    await vi.waitFor(async () => {
      const { body } = await cloud.get('/cloudyard/v1/clients/1/notifications');
      expect(body.count).toBeGreaterThan(1);
    }, 30_000);
    expect(results.length).toBeGreaterThan(0);
  });
});

describe('servers of 0.2.0 on the schema of this version', () => {
  let old: Awaited<ReturnType<typeof newDatabase>>;
  let current: Awaited<ReturnType<typeof newDatabase>>;
  beforeAll(async () => {
    old = await newDatabase(`released_${process.pid}`, (client) => createReleasedSchema(client, '0000_initial'));
    current = await newDatabase(`current_${process.pid}`, async () => {});
    await migrate(current.connection);
  });
  afterAll(async () => {
    await old?.drop();
    await current?.drop();
  });

  it('find every column with its type, and may omit the new ones', async () => {
    const [earlier, later] = [
      await withClient(old.connection, columnsOf),
      await withClient(current.connection, columnsOf),
    ];
    expect(earlier.length).toBeGreaterThan(300);
    expect(changesBetween(earlier, later)).toEqual(contracted);
  });

  it('may execute every statement that they executed before', async () => {
    const { statements } = readRelease('0.2.0');
    expect(statements.length).toBeGreaterThan(100);
    expect(await withClient(old.connection, (client) => refusedStatements(client, statements))).toEqual([]);
    expect(await withClient(current.connection, (client) => refusedStatements(client, statements))).toEqual([]);
  });
});

/** Changes that no running version notices, with the reason. A change that is missing here is refused. */
const contracted: string[] = [];

describe('changes of a schema', () => {
  const column = (name: string, other: object = {}) => ({
    ...{ table: 'a', name, type: 'text', isNullable: false, hasDefault: false, ...other },
  });
  it.each([
    ['a dropped column', [column('b')], [], ['a.b was dropped']],
    ['another type', [column('b')], [column('b', { type: 'bigint' })], ['a.b was text and is bigint']],
    ['a required column', [column('b')], [column('b'), column('c')], ['a.c is new and requires a value']],
    ['a stricter column', [column('b', { isNullable: true })], [column('b')], ['a.b requires a value now']],
    ['a column without its default', [column('b', { hasDefault: true })], [column('b')], ['a.b requires a value now']],
  ])('%s is refused', (_, before, after, found) => {
    expect(changesBetween(before, after)).toEqual(found);
  });
  it.each([
    ['a new table', [column('b')], [column('b'), column('c', { table: 'd' })]],
    ['a nullable column', [column('b')], [column('b'), column('c', { isNullable: true })]],
    ['a column with a default', [column('b')], [column('b'), column('c', { hasDefault: true })]],
    ['a column that may be null now', [column('b')], [column('b', { isNullable: true })]],
  ])('%s is accepted', (_, before, after) => {
    expect(changesBetween(before, after)).toEqual([]);
  });
});

it('the release of a fixture is in the changelog', () => {
  expect(readFileSync('CHANGELOG.md', 'utf8')).toContain('## [0.2.0]');
});
