/** Event streams of consoles: opened with the cookie of a session, idle most of the time. */
import pg from 'pg';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { type EventReader, readEvents } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { until } from '../../../test/until.ts';

const cloud = useCloudyard({ driver: null });
const path = '/cloudyard/v1/session';
let url: string;
beforeAll(async () => {
  url = await cloud.app.listen({ port: 0, host: '127.0.0.1' });
});

const readers: EventReader[] = [];
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const reader of readers) reader.close();
  await until(() => readers.every((reader) => reader.ended()), 5, 'the end of the streams');
  readers.length = 0;
});

interface Session {
  readonly cookie: string;
  readonly csrf: string;
}

async function signIn(token: string): Promise<Session> {
  const answer = await cloud.post(path, { token }, { token: null });
  return { cookie: String(answer.headers['set-cookie']).split(';')[0]!, csrf: answer.body.csrf_token };
}

async function open({ cookie }: Session): Promise<EventReader> {
  const reader = await readEvents(url, { cookie });
  readers.push(reader);
  expect(reader.status).toBe(200);
  await until(() => reader.text() !== '', 5, 'the first bytes');
  return reader;
}

it('a silent stream gets a heartbeat every 15 s, more often than proxies cut idle connections', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const stream = await open(await signIn((await cloud.newClient()).token));
  const heartbeats = () => stream.text().split('event: heartbeat').length - 1;
  vi.advanceTimersByTime(14_999);
  vi.advanceTimersByTime(1);
  await until(() => heartbeats() > 0, 5, 'a heartbeat');
  vi.advanceTimersByTime(15_000);
  await until(() => heartbeats() > 1, 5, 'the next heartbeat');
  expect(heartbeats()).toBe(2);
});

it('idle streams cost no statement, neither for heartbeats nor to notice the end of their sessions', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { token } = await cloud.newClient();
  for (let i = 0; i < 10; i += 1) await open(await signIn(token));
  const statements: string[] = [];
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [statement] = args as [string | { name?: string; text: string }];
    const text = typeof statement === 'string' ? statement : (statement.name ?? statement.text);
    // One of each server, four times a second, which streams and requests share.
    if (text !== 'revision_read') statements.push(text);
    return query.apply(this, args);
  });
  const statementsOfHalfMinute = async () => {
    statements.length = 0;
    for (let ms = 0; ms < 30_000; ms += 300) {
      vi.advanceTimersByTime(300);
      await new Promise(setImmediate);
    }
    return [...statements];
  };
  // Repeated, because a busy machine may delay the read of the revision, without which no copy is trusted.
  await expect.poll(statementsOfHalfMinute, { timeout: 10_000 }).toEqual([]);
  expect(readers.every((reader) => !reader.ended())).toBe(true);
  await cloud.get('/cloud/v1/projects', { token });
  expect(statements).not.toEqual([]);
});
