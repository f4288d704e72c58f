/** Streams of events on several servers with several processes, of changes by clients and by a separate worker. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { type EventReader, readEvents } from '../event-stream.ts';
import { httpClient } from '../http-client.ts';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let yard: Yard;
let server: Running;
let otherUrl: string;
beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
  server = await yard.start(['serve'], { CLOUDYARD_PROCESSES: '2' });
  const otherPort = await freePort();
  otherUrl = `http://127.0.0.1:${otherPort}`;
  await yard.start(['serve'], { CLOUDYARD_PORT: String(otherPort) });
  await yard.start(['worker', '--region', '1']);
});
afterAll(() => yard?.cleanUp());

const read = (url: string, options?: Parameters<typeof readEvents>[2]) => readEvents(url, bootstrapToken, options);
const seen = ({ received }: EventReader) =>
  received.map(({ event, data }) => [event, data!['id'], data!['resource_id']]);

async function createShare(): Promise<string> {
  const body = newShare('a share', await defaultNetwork(yard));
  const task = await yard.ended(await yard.insist('POST', shares, body));
  expect(task.state).toBe('FINISHED');
  return task.created_resources.file_shares[0];
}

it('every process sends the same events, also of a separate worker, and a client resumes on any of them', async () => {
  // Connections are distributed in turn, so two of four streams are on each process.
  const streams: EventReader[] = [];
  for (const url of [yard.url, yard.url, yard.url, yard.url, otherUrl]) streams.push(await read(url));
  const id = await createShare();
  for (const stream of streams) {
    await stream.next({ kind: 'file_share', resource_id: id, change: 'created' });
    // By the worker.
    await stream.next({ kind: 'file_share', resource_id: id, change: 'updated' });
  }
  const last = await createShare();
  for (const stream of streams) await stream.next({ kind: 'file_share', resource_id: last, change: 'updated' });
  await until(() => new Set(streams.map((stream) => stream.lastId())).size === 1, 10, 'the same last event');
  const ofShares = (stream: EventReader) =>
    seen(stream).filter(([, , resource]) => resource === id || resource === last);
  for (const stream of streams) expect(ofShares(stream)).toEqual(ofShares(streams[0]!));
  const lastId = streams[0]!.lastId();
  for (const stream of streams) stream.close();
  const missed = await createShare();
  for (const url of [yard.url, yard.url, otherUrl]) {
    const stream = await read(url, { lastEventId: lastId });
    await stream.next({ kind: 'file_share', resource_id: missed, change: 'created' });
    expect(stream.received.filter(({ event }) => event !== 'message')).toEqual([]);
    stream.close();
  }
});

it('a command that revokes a token ends its streams on all servers within a second', async () => {
  const token = (await yard.run(['token', 'create', '--role', 'reader'])).stdout.trim();
  const streams = [await readEvents(yard.url, token), await readEvents(otherUrl, token)];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  const ends = streams.map(async (stream) => {
    await until(() => stream.ended(), 60, 'the end of the stream');
    return Date.now();
  });
  expect((await yard.run(['token', 'revoke', token])).code).toBe(0);
  const [row] = await yard.sql<{ revoked_at: Date }>('select max(revoked_at) as revoked_at from tokens');
  for (const ended of await Promise.all(ends)) expect(ended - row!.revoked_at.getTime()).toBeLessThan(1200);
});

it('a server that stops ends its streams, and a client resumes on another server', async () => {
  const stream = await read(yard.url);
  await stream.next({ kind: 'file_share', resource_id: await createShare(), change: 'updated' });
  const beganAt = performance.now();
  const { code } = await server.stop();
  expect([code, stream.ended()]).toEqual([0, true]);
  expect(performance.now() - beganAt).toBeLessThan(10_000);
  const other = httpClient(otherUrl, bootstrapToken);

  const created = await other.post('/cloud/v1/projects', { name: 'later' });
  const resumed = await read(otherUrl, { lastEventId: stream.lastId() });
  await resumed.next({ kind: 'project', resource_id: String(created.body.id), change: 'created' });
  expect(resumed.received.some(({ event }) => event === 'reset')).toBe(false);
  resumed.close();
});
