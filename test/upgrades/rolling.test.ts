/** Servers of this version that start on the database of a release, while a client reads. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import type { ConnectionOptions } from '../../src/platform/db.ts';
import { httpClient } from '../http-client.ts';
import { inDatabase } from '../postgres.ts';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { createReleasedSchema, fixtureToken, loadRelease, readRelease } from './release.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const server = inject('postgres');
const name = `rolling_${process.pid}`;
const database = inDatabase(server, name);
let yard: Yard;

async function query(connection: ConnectionOptions, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  await work(client).finally(() => client.end());
}

function urlOf({ connectionString, user, host, port, database: path }: ConnectionOptions): string {
  return connectionString ?? `postgres://${user}@${encodeURIComponent(host!)}:${port}/${path}`;
}

beforeAll(async () => {
  await query(server, (client) => client.query(`create database ${name}`));
  await query(database, async (client) => {
    await createReleasedSchema(client, '0000_initial');
    await loadRelease(client, '0.2.0');
  });
  yard = await openYard({
    ...{ DATABASE_URL: urlOf(database), CLOUDYARD_BOOTSTRAP_TOKEN: fixtureToken },
    ...{ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_BACKUP_BEFORE_MIGRATION: '0' },
  });
});
afterAll(async () => {
  yard?.cleanUp();
  await query(server, (client) => client.query(`drop database if exists ${name} with (force)`));
});

it('a server of 0.2.0 that runs stops the start, the command and the migration, which say so', async () => {
  const applied = async () => {
    let count: unknown;
    await query(database, async (client) => {
      count = (await client.query('select count(*)::int as count from drizzle.__drizzle_migrations')).rows[0].count;
    });
    return count;
  };
  const before = await applied();
  const released = new pg.Client({ ...database, application_name: 'cloudyard api' });
  await released.connect();
  const message = /not migrated, because .* older version use it .*: cloudyard api.*; stop them first/;
  for (const args of [['serve'], ['token', 'list'], ['migrate']]) {
    const { code, stderr, stdout } = await yard.run(args);
    expect({ args, code, output: stderr + stdout }).toEqual({ args, code: 1, output: expect.stringMatching(message) });
  }
  expect(await applied()).toBe(before);
  await released.end();
});

it('two servers that migrate at once answer reads with 200 or 503', async () => {
  const ports = [yard.port, await freePort()];
  const statuses: (number | 'refused')[][] = [[], []];
  const shares = '/cloud/v1/file_shares/1/1';
  let reading = true;
  const readers = ports.map(async (port, i) => {
    const { get } = httpClient(`http://127.0.0.1:${port}`, fixtureToken);
    while (reading) {
      statuses[i]!.push(
        await get(shares).then(
          ({ status }) => status,
          () => 'refused',
        ),
      );
      await sleep(10);
    }
  });
  const started = ports.map((port) => yard.start(['serve'], { CLOUDYARD_PORT: String(port) }));
  await Promise.all(started);
  await until(() => statuses.every((all) => all.filter((status) => status === 200).length > 10), 60, 'reads');
  reading = false;
  await Promise.all(readers);
  for (const all of statuses) {
    expect(all.filter((status) => ![200, 503, 'refused'].includes(status))).toEqual([]);
    // A server that has answered keeps answering.
    expect(all.slice(all.indexOf(200)).filter((status) => status !== 200)).toEqual([]);
  }
  const { results } = readRelease('0.2.0').answers.find(({ path }) => path === shares)!.body as { results: unknown[] };
  for (const port of ports) {
    const { body } = await httpClient(`http://127.0.0.1:${port}`, fixtureToken).get(shares);
    expect(body.results).toHaveLength(results.length);
  }
});
