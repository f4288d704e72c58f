/** Requests whose commit waits for a synchronous standby that is away. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openCloudyard } from '../../test/harness.ts';
import { copyPreparedCluster } from '../../test/prepared-cluster.ts';
import { until } from '../../test/until.ts';
import { createApi } from '../main/api.ts';
import { connect, transaction } from '../platform/db.ts';
import { startEmbeddedPostgres } from '../platform/embedded-postgres.ts';
import { createKeyring } from '../platform/encryption.ts';
import { silentLogger } from '../platform/log.ts';

const networks = '/cloud/v1/networks/1/1';
const soon = { timeout: 30_000, interval: 20 };
const messageOf = (effect: string) => `the request was not completed within 0.5 s${effect}; try again in a second`;

describe('a request whose commit waits for a standby that is away', () => {
  let folder: string;
  let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
  let opened: Awaited<ReturnType<typeof openCloudyard>>;
  let operator: pg.Client;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cloudyard-commits-'));
    chmodSync(folder, 0o755);
    await copyPreparedCluster(folder);
    postgres = await startEmbeddedPostgres({ dataDir: folder, log: silentLogger });
    const database = { connection: postgres.connection, drop: async () => {} };
    const keyring = createKeyring([{ id: 'test', key: Buffer.alloc(32) }]);
    opened = await openCloudyard(postgres.connection, {
      driver: null,
      existing: { database, keyring, token: undefined as never },
    });
    operator = new pg.Client(postgres.connection);
    await operator.connect();
    await operator.query('set synchronous_commit = local');
  });
  afterAll(async () => {
    await operator?.end();
    await opened?.stop();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const setStandby = async (names: string) => {
    await operator.query(`alter system set synchronous_standby_names = '${names}'`);
    await operator.query('select pg_reload_conf()');
    const isRead = async () =>
      (await operator.query('show synchronous_standby_names')).rows[0].synchronous_standby_names;
    await until(async () => (await isRead()) === names, 30, 'the configuration');
  };

  const waiting = async () =>
    (await operator.query(`select from pg_stat_activity where wait_event = 'SyncRep'`)).rowCount;

  it('gets 503, and takes effect when the standby is back; one that has sent no commit changes nothing', async () => {
    const { cloudyard } = opened;
    const app = await createApi(cloudyard.services, { log: silentLogger, timeLimit: { ms: 500, checkMs: 20 } });
    onTestFinished(() => app.close());
    const headers = { authorization: `apikey ${cloudyard.admin}` };
    const send = async (method: 'POST' | 'PATCH', url: string, name: string) => {
      const { statusCode, body } = await app.inject({ method, url, headers, payload: { name } });
      return { status: statusCode, body: JSON.parse(body) };
    };
    const names = async () =>
      (await cloudyard.get(networks)).body.results.map(({ name }: { name: string }) => name).toSorted();
    const [{ id }] = (await cloudyard.get(networks)).body.results;

    await setStandby('away');
    onTestFinished(() => setStandby(''));
    const uncertain = { status: 503, body: { message: messageOf(', and may have taken effect or may still do so') } };
    expect(await send('PATCH', `${networks}/${id}`, 'renamed')).toMatchObject(uncertain);
    expect(await waiting()).toBe(1);
    // The row is locked by the first request.
    const unchanged = { status: 503, body: { message: messageOf('; nothing was changed') } };
    expect(await send('PATCH', `${networks}/${id}`, 'renamed again')).toMatchObject(unchanged);
    expect(await send('POST', networks, 'created')).toMatchObject(uncertain);
    expect(await send('POST', networks, 'created too')).toMatchObject(unchanged);
    expect(await names()).toEqual(['default']);

    await setStandby('');
    await expect.poll(names, soon).toEqual(['created', 'renamed']);
  });

  it('is not ended by the limit of its statement: the change would be visible without being replicated', async () => {
    const db = connect({ ...postgres.connection, statementTimeout: '300ms', log: silentLogger });
    onTestFinished(() => db.$client.end());
    await operator.query('create table notes (note text)');
    await setStandby('away');
    onTestFinished(() => setStandby(''));
    const insert = `insert into notes values ('a note')`;
    const alone = db.$client.query(insert);
    const inTransaction = transaction(db, (tx) => tx.$client.query(insert));
    await expect.poll(waiting, soon).toBe(2);
    await sleep(900);
    expect(await waiting()).toBe(2);
    await setStandby('');
    await expect(Promise.all([alone, inTransaction])).resolves.toBeDefined();
  });
});
