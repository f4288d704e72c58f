/** Several processes on one database: a PostgreSQL of the machine, and the embedded one. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { httpClient } from '../http-client.ts';
import { bootstrapToken, openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { startSystemPostgres } from '../system-postgres.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

const runs = requires('postgresql');
const timeout = { timeout: 300_000 };
const simulated = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' };

let yard: Yard;
afterEach(() => yard?.cleanUp());

const body = async () => newShare('a share', await defaultNetwork(yard));

describe.skipIf(!runs)(skipReason('postgresql') ?? 'on an external PostgreSQL', () => {
  it('two servers and a worker that start at once share resources and tokens', timeout, async () => {
    yard = await openYard(simulated);
    const postgres = await startSystemPostgres(yard.folder);
    const settingsOf = async (name: string, port: number) => {
      mkdirSync(join(yard.folder, name));
      return {
        DATABASE_URL: postgres.url,
        CLOUDYARD_DATA_DIR: join(yard.folder, name),
        CLOUDYARD_PORT: String(port),
      };
    };
    const otherPort = await freePort();
    const started = await Promise.all([
      yard.start(['serve'], await settingsOf('one', yard.port)),
      yard.start(['serve'], await settingsOf('two', otherPort)),
      yard.start(['worker', '--region', '1'], await settingsOf('three', 0)),
    ]);
    for (const { stdout, stderr } of started) {
      expect(stdout()).toContain(`postgres://operator:…@127.0.0.1`);
      expect(stdout() + stderr()).not.toContain('pa55word');
    }
    const other = httpClient(`http://127.0.0.1:${otherPort}`, bootstrapToken);
    expect((await yard.get('/cloud/v1/projects')).body).toMatchObject({ count: 1 });
    expect((await other.get('/cloud/v1/projects')).body).toMatchObject({ count: 1, results: [{ id: 1 }] });

    const task = await other.ended(await yard.post(shares, await body()));
    expect(task.state).toBe('FINISHED');
    const [id] = task.created_resources.file_shares;
    expect((await other.get(`${shares}/${id}`)).body).toMatchObject({ status: 'available' });
    const { drivers } = (await other.get('/healthz/drivers')).body;
    expect(drivers.filter((driver: { region_ids: number[] }) => driver.region_ids.length > 0)).toHaveLength(4);

    const token = (await yard.run(['token', 'create'], await settingsOf('four', 0))).stdout.trim();
    const statuses = () =>
      Promise.all([yard, other].map(async (at) => (await at.get(`${shares}/${id}`, { token })).status));
    expect(await statuses()).toEqual([200, 200]);
    const command = { DATABASE_URL: postgres.url, CLOUDYARD_DATA_DIR: join(yard.folder, 'four') };
    expect((await yard.run(['token', 'revoke', token], command)).code).toBe(0);
    const revoked = performance.now();
    await until(async () => (await statuses()).every((status) => status === 401), 30, 'both refuse');
    expect(performance.now() - revoked).toBeLessThan(1000);

    for (const process of started) expect((await process.stop()).code).toBe(0);
    await postgres.stop();
  });
});

describe('on the embedded PostgreSQL', () => {
  it('a server and a worker run separately and start and stop in any order', timeout, async () => {
    yard = await openYard(simulated);
    const [server, worker] = await Promise.all([yard.start(['serve']), yard.start(['worker', '--region', '1'])]);
    expect((await yard.ended(await yard.post(shares, await body()))).state).toBe('FINISHED');
    expect((await yard.get('/healthz/drivers')).body.drivers).toMatchObject([
      { driver: 'simulated', region_ids: [1] },
      { driver: 'simulated', region_ids: [1] },
      { driver: 'simulated', region_ids: [1] },
      { driver: 'simulated', region_ids: [1] },
      // Delivery drivers of the server, then of the worker.
      { driver: 'simulated', region_ids: [] },
      { driver: 'webhook', region_ids: [] },
      { driver: 'simulated', region_ids: [] },
      { driver: 'webhook', region_ids: [] },
    ]);

    // Without a worker a create waits. The database keeps running for the remaining process.
    expect((await worker.stop()).code).toBe(0);
    const waiting = await yard.post(shares, { ...(await body()), name: 'waiting' });
    expect((await yard.get(`/cloud/v1/tasks/${waiting.body.tasks[0]}`)).body.state).toBe('NEW');
    const next = await yard.start(['worker', '--region', '1']);
    expect((await yard.ended(waiting)).state).toBe('FINISHED');

    expect((await server.stop()).code).toBe(0);
    expect(yard.pids().postgres).not.toBeNull();
    await yard.start(['serve']);
    expect((await yard.get(shares)).body.count).toBe(2);
    expect((await next.stop()).code).toBe(0);
  });

  it('a second worker is on standby, naming the first, and fails over when that is killed', timeout, async () => {
    yard = await openYard(simulated);
    await yard.start(['serve']);
    const first = await yard.start(['worker', '--region', '1']);
    const second = await yard.start(['worker', '--region', '1']);
    expect(second.stdout()).toMatch(new RegExp(`Standby: .* is in use by .*process ${first.pid}`));
    await first.kill();
    expect((await yard.ended(await yard.post(shares, await body()))).state).toBe('FINISHED');
    expect(second.log().map(({ msg }) => msg)).toContain('failing over');
    expect((await second.stop()).code).toBe(0);
  });

  it('concurrent commands and starts do not stop the database of each other', timeout, async () => {
    yard = await openYard(simulated);
    await yard.run(['migrate']);
    for (let round = 0; round < 3; round += 1) {
      const commands = Array.from({ length: 3 }, () => yard.run(['token', 'list']));
      const server = await yard.start(['start']);
      for (const { code, stderr } of await Promise.all(commands)) expect([code, stderr]).toEqual([0, '']);
      expect((await yard.get('/readyz')).status).toBe(200);
      expect((await server.stop()).code).toBe(0);
    }
  });
});
