/** What `doctor` says about a PostgreSQL with a standby. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/until.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../test/replicated-postgres.ts';
import { requires } from '../../test/requires.ts';
import { checkReplication } from './replication-checks.ts';

describe.skipIf(!requires('postgresql'))('the replication of PostgreSQL', () => {
  let servers: ReplicatedPostgres;
  let admin: pg.Client;

  beforeAll(async () => {
    servers = await startReplicatedPostgres();
    admin = await connect();
    await admin.query('create role cloudyard login');
  }, 60_000);
  afterAll(async () => {
    await admin.end();
    await servers.remove();
  });

  async function connect(user = 'operator'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: servers.primary.url.replace('operator', user) });
    await client.connect();
    return client;
  }

  /** As the role of Cloudyard sees it. */
  async function check(required = false) {
    const client = await connect('cloudyard');
    return checkReplication(client, required).finally(() => client.end());
  }

  const withNames = async (names: string) => {
    await admin.query(`alter system set synchronous_standby_names = '${names}'`);
    await admin.query('select pg_reload_conf()');
    const state = names === '' ? 'async' : 'sync';
    const reached = `select from pg_stat_replication where sync_state = '${state}'`;
    await until(async () => (await admin.query(reached)).rows.length > 0, 30, `a standby that is ${state}`);
  };

  it('must be readable by the role', async () => {
    const [finding] = await check();
    expect(finding).toMatchObject({
      ok: false,
      remedy: expect.stringMatching(/^runuser -u postgres -- psql -c 'grant pg_read_all_stats to "cloudyard"' /),
    });
    await admin.query('grant pg_read_all_stats to cloudyard');
    expect(await check()).toEqual([expect.objectContaining({ ok: true, detail: '1 synchronous of 1 standbys' })]);
  });

  it('must be synchronous', async () => {
    await withNames('');
    onTestFinished(() => withNames('standby'));
    expect(await check()).toMatchObject([
      { ok: false, detail: expect.stringContaining('synchronous_standby_names is empty') },
    ]);
  });

  it.each(['off', 'local'])('does not hold for a role with synchronous_commit = %s', async (value) => {
    await admin.query(`alter role cloudyard set synchronous_commit = ${value}`);
    onTestFinished(async () => void (await admin.query('alter role cloudyard reset synchronous_commit')));
    expect(await check()).toMatchObject([
      { ok: false, remedy: expect.stringContaining('set synchronous_commit = on') },
    ]);
  });

  it('is required only for regions of several hosts', async () => {
    await servers.standby.kill();
    const connected = 'select from pg_stat_replication';
    await until(async () => (await admin.query(connected)).rows.length === 0, 30, 'the end of the standby');
    const remedy = 'patronictl -c /etc/patroni/config.yml list';
    expect(await check()).toMatchObject([{ ok: false, detail: 'no standby is connected', remedy }]);
    await admin.query(`alter system reset synchronous_standby_names`);
    await admin.query('select pg_reload_conf()');
    await until(async () => (await check()).length === 0, 30, 'the new setting');
    expect(await check(true)).toMatchObject([{ ok: false, detail: expect.stringContaining('is empty') }]);
  });
});
